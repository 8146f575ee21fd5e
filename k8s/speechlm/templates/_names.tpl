{{- define "speechlm.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Of the pods. app.kubernetes.io/name is KubeRay's: its services select by it. No version among
them, since another label is another cluster. */}}
{{- define "speechlm.selector" -}}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "speechlm.labels" -}}
{{ include "speechlm.selector" . }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "speechlm.image" -}}
{{- with .Values.image -}}
{{ required "image.repository: name the image that was built from k8s/images" .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{/* How long a cluster that ends may take: its requests, and what comes after them. */}}
{{- define "speechlm.graceSeconds" -}}
{{ add (.Values.service.drain_seconds | ceil) 30 }}
{{- end -}}

{{/* How long the replicas of an evicted pod may take. Serve stops one drain_seconds before this ends, or
as soon as another has taken its place. */}}
{{- define "speechlm.leaveSeconds" -}}
{{ add (.Values.service.drain_seconds | ceil) .Values.eviction.replacementSeconds }}
{{- end -}}

{{- define "speechlm.dataClaim" -}}
{{ .Values.data.existingClaim | default (printf "%s-data" (include "speechlm.name" .)) }}
{{- end -}}
