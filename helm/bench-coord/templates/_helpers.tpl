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
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "bench.labels" -}}
{{ include "bench.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: bench-coord
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .root.Values.commonLabels }}
{{- include "bench.labelsOfOthers" (dict "labels" . "value" "commonLabels") }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Refuses labels by which the chart finds its own pods. */}}
{{- define "bench.labelsOfOthers" -}}
{{- range $key, $_ := .labels -}}
{{- if or (hasPrefix "app.kubernetes.io/" $key) (hasPrefix "bench-coord/" $key) (eq $key "helm.sh/chart") -}}
{{- fail (printf "%s: %s is set by the chart" $.value $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels and annotations of pods: the chart's, those of all pods, the workload's. `read` adds checksums of what is read at the start. */}}
{{- define "bench.podMetadata" -}}
{{- $labels := fromYaml (include "bench.labels" .) -}}
{{- with .role }}{{ $_ := set $labels "bench-coord/role" . }}{{ end -}}
{{- $chosen := mergeOverwrite (dict) (default dict .root.Values.podLabels) (default dict .from.podLabels) -}}
{{- include "bench.labelsOfOthers" (dict "labels" $chosen "value" "podLabels") -}}
labels:
  {{- toYaml (mergeOverwrite $labels $chosen) | nindent 2 }}
{{- $annotations := mergeOverwrite (dict) (default dict .root.Values.podAnnotations) (default dict .from.podAnnotations) -}}
{{- if .read }}{{ $annotations = mergeOverwrite $annotations (fromYaml (include "bench.checksums" .root)) }}{{ end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The image; a coordinator may have a tag of its own. */}}
{{- define "bench.image" -}}
{{- $own := get (default dict .from) "imageTag" -}}
{{- with .root.Values.image -}}
{{- if $own -}}
{{ .repository }}:{{ $own }}
{{- else if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.root.Chart.AppVersion .tag }}
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

{{/* Name of the secret of a component: its own, the common one of the user, or the chart's. `url` (store, queue) may be elsewhere. */}}
{{- define "bench.secret" -}}
{{- $secrets := .root.Values.secrets -}}
{{- $own := get $secrets (printf "%sSecret" .component) -}}
{{- $elsewhere := get $secrets (printf "%sUrlSecret" (default "" .url)) -}}
{{- if $own -}}
{{ $own }}
{{- else if $elsewhere -}}
{{ $elsewhere }}
{{- else if $secrets.existingSecret -}}
{{ $secrets.existingSecret }}
{{- else if eq .component "migrate" -}}
{{ include "bench.fullname" .root }}-migrate
{{- else -}}
{{ include "bench.fullname" .root }}
{{- end -}}
{{- end -}}

{{/* Environment that every process reads: URLs from the secret, the folder that it may write to, its log filter. What the user
adds comes after it; a workload's beats that of all. */}}
{{- define "bench.env" -}}
{{- $ours := fromYamlArray (include "bench.ownEnv" .) -}}
{{- $taken := list "POD_NAME" "JOB_NAME" "BENCH_HTTP_TOKEN" -}}
{{- if .root.Values.meter.enabled }}{{ $taken = concat $taken (list "BENCH_METER_SECRET" "BENCH_METER_PUBLIC_URL") }}{{ end -}}
{{- range $ours }}{{ $taken = append $taken .name }}{{ end -}}
{{- $names := list -}}
{{- range .extraEnv }}{{ $names = append $names .name }}{{ end -}}
{{- $all := $ours -}}
{{- range .root.Values.extraEnv }}{{ if not (has .name $names) }}{{ $all = append $all . }}{{ end }}{{ end -}}
{{- $all = concat $all (default list .extraEnv) -}}
{{- range slice $all (len $ours) -}}
{{- if has .name $taken }}{{ fail (printf "extraEnv: %s is set by the chart, or named twice" .name) }}{{ end -}}
{{- $taken = append $taken .name -}}
{{- end -}}
{{ toYaml $all }}
{{- end -}}

{{- define "bench.url" -}}
{{- $name := printf "BENCH_%s_URL" (upper .url) -}}
{{- $suffix := get .root.Values.secrets (printf "%sUrlSuffix" .url) -}}
- name: {{ ternary (printf "SECRET_%s_URL" (upper .url)) $name (ne $suffix "") }}
  valueFrom:
    secretKeyRef:
      name: {{ include "bench.secret" (dict "root" .root "component" .secret "url" .url) }}
      key: {{ get .root.Values.secrets.keys (printf "%sUrl" .url) }}
{{- if $suffix }}
- name: {{ $name }}
  value: {{ printf "$(SECRET_%s_URL)%s" (upper .url) $suffix | quote }}
{{- end }}
{{- end -}}

{{- define "bench.ownEnv" -}}
{{- range $url := list "store" "queue" }}
{{ include "bench.url" (dict "root" $.root "secret" $.secret "url" $url) }}
{{- end }}
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
{{- end -}}

{{/* The account of the object store, where archive and datasets are used. */}}
{{- define "bench.objectStore" -}}
{{- if or .Values.objectStore.existingSecret .Values.objectStore.values }}
envFrom:
  - secretRef:
      name: {{ default (printf "%s-object-store" (include "bench.fullname" .)) .Values.objectStore.existingSecret }}
{{- end }}
{{- end -}}

{{/* The providers' accounts, where models are called. */}}
{{- define "bench.accounts" -}}
{{- if or .Values.accounts.existingSecret .Values.accounts.values }}
envFrom:
  - secretRef:
      name: {{ default (printf "%s-accounts" (include "bench.fullname" .)) .Values.accounts.existingSecret }}
{{- end }}
{{- end -}}

{{/* What the keys of metered runs are made of: the same for all that make or take them, so it is in the common secret alone. */}}
{{- define "bench.meterKey" -}}
{{- if .Values.meter.enabled -}}
- name: BENCH_METER_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ include "bench.secret" (dict "root" . "component" "meter") }}
      key: {{ .Values.secrets.keys.meterKey }}
{{- end -}}
{{- end -}}

{{/* Mounts of our containers, and the volumes of their pods: the chart's, those of all pods, the workload's. */}}
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
{{- $names := list -}}
{{- range concat (default list .root.Values.extraVolumes) (default list .from.extraVolumes) }}{{ $names = append $names .name }}{{ end -}}
{{- $paths := list "/var/lib/bench" "/tmp" "/etc/bench" "/datasets" -}}
{{- range $mount := concat (default list .root.Values.extraVolumeMounts) (default list .from.extraVolumeMounts) -}}
{{- $path := trimSuffix "/" .mountPath -}}
{{- if or (has $path $paths) (regexMatch "^/(etc/bench|datasets)/" $path) }}{{ fail (printf "extraVolumeMounts: %s is the chart's own, or mounted twice" $path) }}{{ end -}}
{{- if not (has .name $names) }}{{ fail (printf "extraVolumeMounts: no volume of extraVolumes is called %s" .name) }}{{ end -}}
{{- $paths = append $paths $path }}
{{ toYaml (list $mount) }}
{{- end -}}
{{- end -}}

{{- define "bench.volumes" -}}
- name: home
  emptyDir:
    sizeLimit: {{ .root.Values.storage.home }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .root.Values.storage.tmp }}
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
{{- $names := list "home" "tmp" "settings" "datasets" -}}
{{- range $volume := concat (default list .root.Values.extraVolumes) (default list .from.extraVolumes) -}}
{{- if has .name $names }}{{ fail (printf "extraVolumes: %s is the chart's own, or there twice" .name) }}{{ end -}}
{{- $names = append $names .name }}
{{ toYaml (list $volume) }}
{{- end -}}
{{- end -}}

{{/* What runs before and beside our containers: sidecars go on, and are stopped after ours, so that a worker that drains keeps its way
to the store. */}}
{{- define "bench.initContainers" -}}
{{- $names := list "coordinator" "worker" "meter" "migrate" "submit" "gate" -}}
{{- $all := list -}}
{{- $sidecars := concat (default list .root.Values.sidecars) (default list .from.sidecars) -}}
{{- if and $sidecars (semverCompare "<1.29.0-0" .root.Capabilities.KubeVersion.Version) -}}
{{- fail "sidecars: Kubernetes 1.29 is needed, which starts them before the other containers and stops them after" -}}
{{- end -}}
{{- range $sidecars }}{{ $all = append $all (mergeOverwrite (deepCopy .) (dict "restartPolicy" "Always")) }}{{ end -}}
{{- $all = concat $all (default list .root.Values.initContainers) (default list .from.initContainers) -}}
{{- $safe := list -}}
{{- range $all -}}
{{- if has .name $names }}{{ fail (printf "initContainers and sidecars: %s is the chart's own name, or there twice" .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- $safe = append $safe (merge (deepCopy .) (dict "securityContext" (dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL"))))) -}}
{{- end -}}
{{- with $safe }}{{ toYaml . }}{{ end -}}
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
image: {{ include "bench.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Where pods go; those of a long-running component are spread. */}}
{{- define "bench.placement" -}}
{{- with .from.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" }}
{{- with get $.from $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "bench.spread" -}}
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
checksum/secrets: {{ include "bench.secretsMark" . }}
{{- end -}}

{{/* Who reads pods reads their annotations: where secrets stand in the values, what is made of them is salted with the release and goes
through scrypt, so that a short password is not found by trying hashes. It takes a moment, and is made once. */}}
{{- define "bench.secretsMark" -}}
{{- $s := .Values.secrets -}}
{{- $all := printf "%s %s" (toJson $s) (toJson (list .Values.accounts .Values.objectStore)) -}}
{{- if or $s.storeUrl $s.queueUrl $s.httpToken $s.meterKey .Values.accounts.values .Values.objectStore.values -}}
{{- if not (hasKey .Values "_secretsMark") -}}
{{- $salt := printf "%s/%s" .Release.Namespace .Release.Name -}}
{{- $_ := set .Values "_secretsMark" (derivePassword 1 "maximum" $all $salt "checksum/secrets" | sha256sum) -}}
{{- end -}}
{{- get .Values "_secretsMark" -}}
{{- else -}}
{{- $all | sha256sum -}}
{{- end -}}
{{- end -}}

{{/* Ways out of every pod: names, the store and the broker, and what is named for all. */}}
{{- define "bench.egress" -}}
{{- $n := .Values.networkPolicy -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  to:
    - namespaceSelector: {}
    # where nodes cache names for their pods
    - ipBlock: {cidr: 169.254.20.10/32}
{{- range list $n.store $n.queue }}
- ports:
    {{- range .ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- with $n.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
