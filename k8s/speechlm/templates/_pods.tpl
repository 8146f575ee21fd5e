{{/* A pod of Ray's. Takes root, role (head, front-end or engine), name and group (its values). */}}
{{- define "speechlm.pod" -}}
{{- $ := .root -}}
{{- $values := $.Values -}}
{{- $volume := $values.modelVolume -}}
{{- $front := eq .role "front-end" -}}
{{- $data := and $front $values.data.enabled -}}
{{- $keys := and $front $values.apiKeys.existingSecret -}}
metadata:
  labels:
    {{- include "speechlm.selector" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  {{- with .group.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if and (eq .role "engine") $values.runtimeClassName }}
  runtimeClassName: {{ $values.runtimeClassName }}
  {{- end }}
  {{- if not (and (eq .role "head") $values.autoscaling.enabled) }}
  automountServiceAccountToken: false
  {{- end }}
  enableServiceLinks: false
  {{- if eq .role "head" }}
  terminationGracePeriodSeconds: {{ include "speechlm.graceSeconds" $ }}
  {{- else }}
  terminationGracePeriodSeconds: {{ add (include "speechlm.leaveSeconds" $) 30 }}
  {{- end }}
  securityContext:
    {{- toYaml $values.podSecurityContext | nindent 4 }}
  {{- with .group.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .group.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $affinity := deepCopy (.group.affinity | default dict) }}
  {{- if $data }}
  {{- $together := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "speechlm.selector" $ | fromYaml | merge (dict "app.kubernetes.io/component" .role))) }}
  {{- $pods := $affinity.podAffinity | default dict }}
  {{- $required := append ($pods.requiredDuringSchedulingIgnoredDuringExecution | default list) $together }}
  {{- $pods = set $pods "requiredDuringSchedulingIgnoredDuringExecution" $required }}
  {{- $affinity = set $affinity "podAffinity" $pods }}
  {{- end }}
  {{- with $affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .group.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or $values.sidecars (eq $volume.type "copy") }}
  initContainers:
  {{- end }}
  {{- range $values.sidecars }}
    - {{- merge (dict "restartPolicy" "Always") . (dict "securityContext" $values.containerSecurityContext) | toYaml | nindent 6 }}
  {{- end }}
  {{- if eq $volume.type "copy" }}
    - name: models
      image: {{ required "modelVolume.copy.image: name the image that copies the models" $volume.copy.image }}
      command:
        {{- toYaml $volume.copy.command | nindent 8 }}
      env:
        - { name: HOME, value: /tmp }
        - { name: SPEECHLM_ROLE, value: {{ .role }} }
        {{- with $volume.copy.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $volume.copy.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $volume.copy.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml $values.containerSecurityContext | nindent 8 }}
      volumeMounts:
        - { name: scratch, mountPath: /tmp }
        - { name: models, mountPath: {{ $volume.mountPath }} }
  {{- end }}
  containers:
    - name: ray-{{ .role }}
      image: {{ include "speechlm.image" $ }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      ports:
        {{- if eq .role "head" }}
        - { name: gcs-server, containerPort: 6379 }
        - { name: dashboard, containerPort: 8265 }
        - { name: client, containerPort: 10001 }
        {{- end }}
        - { name: serve, containerPort: 8000 }
        - { name: metrics, containerPort: 8080 }
      env:
        - { name: HOME, value: /tmp }
        - { name: HF_HUB_OFFLINE, value: "1" }
        - { name: RAY_USAGE_STATS_ENABLED, value: "0" }
        - { name: RAY_worker_niceness, value: "0" }
        - { name: RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S, value: "30" }
        {{- /* An engine that hangs ends nothing, however long its replica may finish its requests. */}}
        - { name: RAY_SERVE_FORCE_STOP_UNHEALTHY_REPLICAS, value: "1" }
        {{- /* Serve's proxies would answer 500 to some headers. */}}
        - name: RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH
          value: deployments.front_end.proxy:middlewares
        {{- if ne .role "head" }}
        {{- /* On SIGTERM, Ray tells Serve that the node leaves, and stays until its replicas have. */}}
        - { name: RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S, value: {{ include "speechlm.leaveSeconds" $ | quote }} }
        {{- end }}
        {{- with $values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .group.resources | nindent 8 }}
      securityContext:
        {{- toYaml $values.containerSecurityContext | nindent 8 }}
      {{- /* KubeRay's own need wget. Port 52365 is Ray's agent, 8000 Serve's proxy: a worker gets
             requests while both are well. */}}
      livenessProbe:
        httpGet: { path: /api/healthz, port: 52365 }
        initialDelaySeconds: 30
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 12
      readinessProbe:
        {{- if eq .role "head" }}
        httpGet: { path: /api/healthz, port: 52365 }
        {{- else }}
        httpGet: { path: /-/healthz, port: serve }
        {{- end }}
        initialDelaySeconds: 10
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      volumeMounts:
        - { name: scratch, mountPath: /tmp }
        {{- if ne $volume.type "image" }}
        - { name: models, mountPath: {{ $volume.mountPath }}, readOnly: true }
        {{- end }}
        {{- if $data }}
        - { name: data, mountPath: /data }
        {{- end }}
        {{- if $keys }}
        - { name: keys, mountPath: /etc/speechlm/keys, readOnly: true }
        {{- end }}
  volumes:
    - name: scratch
      emptyDir: { sizeLimit: {{ $values.scratch.sizeLimit }} }
    {{- if ne $volume.type "image" }}
    - name: models
      {{- if eq $volume.type "persistentVolumeClaim" }}
      persistentVolumeClaim:
        claimName: {{ required "modelVolume.claimName: name the claim with the models" $volume.claimName }}
        readOnly: true
      {{- else if eq $volume.type "hostPath" }}
      hostPath:
        path: {{ required "modelVolume.hostPath: name the directory of the nodes" $volume.hostPath }}
        type: Directory
      {{- else }}
      emptyDir: { sizeLimit: {{ $volume.copy.sizeLimit }} }
      {{- end }}
    {{- end }}
    {{- if $data }}
    - name: data
      persistentVolumeClaim: { claimName: {{ include "speechlm.dataClaim" $ }} }
    {{- end }}
    {{- if $keys }}
    - name: keys
      secret: { secretName: {{ $values.apiKeys.existingSecret }} }
    {{- end }}
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
