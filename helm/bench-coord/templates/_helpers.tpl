{{/* Prefix of all object names, at most 40 characters: CronJobs may have 52 and add a name of their own. */}}
{{- define "bench.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What pods are selected by. Never changes between releases of the chart: selectors are immutable. */}}
{{- define "bench.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "bench.labels" -}}
{{ include "bench.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: bench-coord
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bench.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bench.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "bench.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* Name of the secret of a component: its own, the common one of the user, or the chart's. */}}
{{- define "bench.secret" -}}
{{- $secrets := .root.Values.secrets -}}
{{- $own := get $secrets (printf "%sSecret" .component) -}}
{{- if $own -}}
{{ $own }}
{{- else if $secrets.existingSecret -}}
{{ $secrets.existingSecret }}
{{- else if eq .component "migrate" -}}
{{ include "bench.fullname" .root }}-migrate
{{- else -}}
{{ include "bench.fullname" .root }}
{{- end -}}
{{- end -}}

{{/* Environment that every process reads: URLs from the secret, the folder that it may write to, its log filter. */}}
{{- define "bench.env" -}}
{{- $secret := include "bench.secret" (dict "root" .root "component" .secret) -}}
- name: BENCH_STORE_URL
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ .root.Values.secrets.keys.storeUrl }}
- name: BENCH_QUEUE_URL
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ .root.Values.secrets.keys.queueUrl }}
- name: BENCH_HOME
  value: /var/lib/bench
- name: RUST_LOG
  value: {{ .root.Values.logLevel | quote }}
{{- with .root.Values.observability.otlp }}
{{- if .endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ .protocol }}
{{- if .headersSecret }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .headersSecret }}
      key: otlp-headers
{{- end }}
{{- end }}
{{- end }}
{{- if .datasets }}
{{- with .root.Values.datasets }}
{{- if .existingClaim }}
- name: BENCH_DATASETS_DIR
  value: /datasets
{{- end }}
{{- if .url }}
- name: BENCH_DATASETS_URL
  value: {{ .url | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.archive.url }}
- name: BENCH_ARCHIVE_URL
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- with .extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The account of the object store, where archive and datasets are used. */}}
{{- define "bench.objectStore" -}}
{{- if or .Values.objectStore.existingSecret .Values.objectStore.values }}
envFrom:
  - secretRef:
      name: {{ default (printf "%s-object-store" (include "bench.fullname" .)) .Values.objectStore.existingSecret }}
{{- end }}
{{- end -}}

{{- define "bench.mounts" -}}
- name: home
  mountPath: /var/lib/bench
- name: tmp
  mountPath: /tmp
{{- if and .settings .root.Values.settings }}
- name: settings
  mountPath: /etc/bench
  readOnly: true
{{- end }}
{{- if and .datasets .root.Values.datasets.existingClaim }}
- name: datasets
  mountPath: /datasets
  readOnly: true
{{- end }}
{{- end -}}

{{- define "bench.volumes" -}}
- name: home
  emptyDir:
    sizeLimit: 2Gi
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
{{- if and .settings .root.Values.settings }}
- name: settings
  configMap:
    name: {{ include "bench.fullname" .root }}-settings
{{- end }}
{{- if and .datasets .root.Values.datasets.existingClaim }}
- name: datasets
  persistentVolumeClaim:
    claimName: {{ .root.Values.datasets.existingClaim }}
    readOnly: true
{{- end }}
{{- end -}}

{{/* The pod's half of the restricted profile, and what all pods have in common. */}}
{{- define "bench.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .root.Values.runAsUser }}
  runAsGroup: {{ .root.Values.runAsUser }}
  fsGroup: {{ .root.Values.runAsUser }}
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{/* The container's half. */}}
{{- define "bench.container" -}}
image: {{ include "bench.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Where the pods of a long-running component go. */}}
{{- define "bench.placement" -}}
{{- with .from.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .from.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .from.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .from.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "bench.selector" $ | nindent 8 }}
  {{- end }}
{{- end -}}

{{/* `exec` probes: every path of an address other than loopback needs the bearer token, which kubelet cannot send. */}}
{{- define "bench.probes" -}}
startupProbe:
  exec:
    command: {{ toJson (append .command (printf "http://127.0.0.1:%v/healthz" .port)) }}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  exec:
    command: {{ toJson (append .command (printf "http://127.0.0.1:%v/readyz" .port)) }}
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  exec:
    command: {{ toJson (append .command (printf "http://127.0.0.1:%v/healthz" .port)) }}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* Whole pages of pods change when what they read at their start does. */}}
{{- define "bench.checksums" -}}
checksum/settings: {{ .Values.settings | sha256sum }}
checksum/secrets: {{ printf "%s %s" (toJson .Values.secrets) (toJson (list .Values.accounts .Values.objectStore)) | sha256sum }}
{{- end -}}
