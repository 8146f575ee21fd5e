{{/* serveConfigV2: the application's settings, and what only the chart knows. */}}
{{- define "speechlm.serveConfig" -}}
{{- if and (not .Values.apiKeys.existingSecret) (not (dig "open" false .Values.guards)) -}}
{{- fail "apiKeys.existingSecret: name a Secret with keys.yaml, or say guards.open: true" -}}
{{- end -}}
{{- range list "ingress_replicas" "store" -}}
{{- if hasKey $.Values.service . -}}
{{- fail (printf "service.%s: the chart sets it; see frontEnds and data in values.yaml" .) -}}
{{- end -}}
{{- end -}}
{{- $front := .Values.frontEnds -}}
{{- $chart := dict "ingress_replicas" (mul $front.replicas $front.processes) -}}
{{- $_ := set $chart "store" (.Values.data.enabled | ternary "/data/store.sqlite3" "/tmp/store.sqlite3") -}}
{{- $service := merge $chart .Values.service -}}
{{- $guards := deepCopy .Values.guards -}}
{{- if .Values.apiKeys.existingSecret -}}
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
    deployments:
      - name: Ingress
        ray_actor_options:
          num_cpus: 0
          resources: { front_end: 1 } # only where the keys and the data are
{{- end -}}
