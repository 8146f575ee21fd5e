{{/* serveConfigV2: the application's settings, and what only the chart knows. */}}
{{- define "speechlm.serveConfig" -}}
{{- if and (not .Values.apiKeys.existingSecret) (not (dig "open" false .Values.guards)) -}}
{{- fail "apiKeys.existingSecret: name a Secret with keys.yaml, or say guards.open: true" -}}
{{- end -}}
{{- range list "ingress_replicas" "front_end_resource" "store" -}}
{{- if hasKey $.Values.service . -}}
{{- fail (printf "service.%s: the chart sets it; see frontEnds and data in values.yaml" .) -}}
{{- end -}}
{{- end -}}
{{- $front := .Values.frontEnds -}}
{{- if not .Values.data.enabled -}}
{{- if and (gt (int $front.replicas) 1) (ne (int (dig "max_voices" 1 .Values.service)) 0) -}}
{{- fail "service.max_voices: without data.enabled each pod of frontEnds would store voices that others do not know; say 0, or frontEnds.replicas: 1" -}}
{{- end -}}
{{- if dig "usage_file" "" .Values.guards -}}
{{- fail "guards.usage_file: without data.enabled no pod keeps a file" -}}
{{- end -}}
{{- else if not (hasPrefix "/data/" (dig "usage_file" "" .Values.guards | default "/data/")) -}}
{{- fail "guards.usage_file: only what is in /data is kept" -}}
{{- end -}}
{{- $audit := dig "audit" "path" "" .Values.guards | default "" -}}
{{- if and $audit (not (hasPrefix "/tmp/" $audit)) (not (and .Values.data.enabled (hasPrefix "/data/" $audit))) -}}
{{- fail "guards.audit.path: front ends can write only in /data (with data.enabled) and /tmp" -}}
{{- end -}}
{{- $chart := dict "ingress_replicas" (mul $front.replicas $front.processes) -}}
{{- $_ := set $chart "front_end_resource" "front_end" -}}
{{- $_ := set $chart "store" (.Values.data.enabled | ternary "/data/store.sqlite3" "/tmp/store.sqlite3") -}}
{{- $service := merge $chart .Values.service -}}
{{- $guards := deepCopy .Values.guards -}}
{{- if and .Values.data.enabled (not (hasKey $guards "usage_file")) -}}
{{- $_ := set $guards "usage_file" "/data/usage.sqlite3" -}}
{{- end -}}
{{- if .Values.apiKeys.existingSecret -}}
{{- if dig "keys_file" "" .Values.guards -}}
{{- fail "guards.keys_file: the chart sets it; see apiKeys" -}}
{{- end -}}
{{- $_ := set $guards "keys_file" "/etc/speechlm/keys/keys.yaml" -}}
{{- end -}}
proxy_location: EveryNode
http_options:
  host: 0.0.0.0
  port: 8000
applications:
  - name: speechlm
    route_prefix: /
    import_path: deployments.builder:build
    args:
      models:
        {{- toYaml .Values.models | nindent 8 }}
      service:
        {{- toYaml $service | nindent 8 }}
      guards:
        {{- toYaml $guards | nindent 8 }}
      tracing:
        {{- toYaml .Values.tracing | nindent 8 }}
{{- end -}}
