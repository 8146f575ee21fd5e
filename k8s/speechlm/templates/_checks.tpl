{{/* What would render, but not run. */}}
{{- define "speechlm.checks" -}}
{{- $names := list "front-ends" -}}
{{- $pods := list -}}
{{- range .Values.engineGroups -}}
{{- if has .name $names -}}
{{- fail (printf "engineGroups: the name %s is taken" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if or (gt (int .minReplicas) (int .replicas)) (gt (int .replicas) (int .maxReplicas)) -}}
{{- fail (printf "engineGroups: %s needs minReplicas <= replicas <= maxReplicas" .name) -}}
{{- end -}}
{{- $pods = append $pods (include "speechlm.rayResources" .resources | fromYaml) -}}
{{- end -}}
{{- range .Values.models -}}
{{- $engine := merge (dict) (.engine | default dict) (dict "cpus" 1 "gpus" 0) -}}
{{- $vocoder := merge (dict) (.vocoder | default dict) (dict "cpus" 0 "gpus" 0) -}}
{{- $cpus := addf $engine.cpus $vocoder.cpus -}}
{{- $gpus := addf $engine.gpus $vocoder.gpus -}}
{{- $fits := false -}}
{{- range $pods -}}
{{- if and (le $cpus (float64 .cpus)) (le $gpus (float64 .gpus)) -}}
{{- $fits = true -}}
{{- end -}}
{{- end -}}
{{- if not $fits -}}
{{- fail (printf "models: a replica of %s takes %v cpus and %v gpus (engine and vocoder), which no pod of engineGroups has" .id $cpus $gpus) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.upgrade.type "NewClusterWithIncrementalUpgrade" -}}
{{- with .Values.upgrade.incremental -}}
{{- if not $.Values.autoscaling.enabled -}}
{{- fail "upgrade.type: NewClusterWithIncrementalUpgrade needs autoscaling.enabled" -}}
{{- end -}}
{{- if not .gatewayClassName -}}
{{- fail "upgrade.incremental.gatewayClassName: name a class of gateways" -}}
{{- end -}}
{{- if gt (int .stepSizePercent) (int .maxSurgePercent) -}}
{{- fail "upgrade.incremental.stepSizePercent: at most maxSurgePercent" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What Ray has in a pod, as KubeRay reads it from the resources of its container. */}}
{{- define "speechlm.rayResources" -}}
{{- $requests := .requests | default dict -}}
{{- $limits := .limits | default dict -}}
{{- $cpu := $limits.cpu | default $requests.cpu | default 0 | toString -}}
{{- $gpus := 0 -}}
{{- range $name, $amount := $limits -}}
{{- if hasSuffix "gpu" $name -}}
{{- $gpus = int $amount -}}
{{- end -}}
{{- end -}}
cpus: {{ hasSuffix "m" $cpu | ternary (divf (trimSuffix "m" $cpu | float64) 1000) (float64 $cpu) | ceil }}
gpus: {{ $gpus }}
{{- end -}}
