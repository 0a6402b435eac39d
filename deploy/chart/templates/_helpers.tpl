{{/* Host of the base URL. */}}
{{- define "berth.host" -}}
{{ (urlParse .Values.baseURL).hostname }}
{{- end -}}

{{/* Reference of an image, by digest if there is one. */}}
{{- define "berth.image" -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}

{{/*
CEL: the request is of one of Berth's accounts. The last name is that of accounts for other clusters (first-run.md), and of
releases that had one account. Other controllers may have theirs in the same namespace.
*/}}
{{- define "berth.byBerth" -}}
{{- $space := .Release.Namespace -}}
request.userInfo.username in [
{{- range list "watcher" "worker" "collector" "web" "ssh-jump" "migrate" "retire" -}}
'system:serviceaccount:{{ $space }}:berth-{{ . }}', {{ end -}}
'system:serviceaccount:{{ $space }}:berth']
{{- end -}}

{{/* Settings of all parts that are no secrets. */}}
{{- define "berth.settings" -}}
BERTH_BASE_URL: {{ .Values.baseURL | trimSuffix "/" | quote }}
# Besides the host of the base URL. The Service's own name is for probes, Prometheus and agents.
BERTH_ALLOWED_HOSTS: {{ join "," (append .Values.extraHosts (printf "berth-web.%s.svc" .Release.Namespace)) | quote }}
BERTH_BEHIND_PROXY: "1"
# Whose X-Forwarded-For is believed: the addresses of your ingress.
FORWARDED_ALLOW_IPS: {{ join "," .Values.trustedProxies | quote }}
# Those that admission.yaml lets Berth make volumes of.
BERTH_DRIVER_FOLDERS: {{ join "," .Values.driverFolders | quote }}
{{- with .Values.workspaceDomain }}
BERTH_WORKSPACE_DOMAIN: {{ quote . }}
{{- end }}
{{- if and .Values.sshJump.enabled .Values.sshJump.host }}
BERTH_SSH_JUMP_HOST: {{ quote .Values.sshJump.host }}
BERTH_SSH_JUMP_PORT: {{ int .Values.sshJump.port | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ quote $value }}
{{- end }}
{{- end -}}

{{/*
Where pods run, and what pulls their image. Takes a dict: Values, part. The migration has no part: Helm runs it before
the PriorityClass is there.
*/}}
{{- define "berth.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- if and .part .Values.priorityClass.name }}
priorityClassName: {{ .Values.priorityClass.name }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .part }}
{{- $part := .part }}
# Over nodes and zones, as far as there is room.
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {app.kubernetes.io/name: berth, app.kubernetes.io/component: {{ $part }}}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}

{{/* Sources of a part's environment. Takes a dict: Values, own (the part's own Secret, which comes last and so wins). */}}
{{- define "berth.envFrom" -}}
- configMapRef:
    name: berth-settings
{{- if not .Values.secret.asFiles }}
- secretRef:
    name: {{ .Values.secret.name }}
{{- with .own }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Secrets and kubeconfigs as files. Takes a dict: Values, clusters (true for parts that talk to clusters). */}}
{{- define "berth.mounts" -}}
{{- if .Values.secret.asFiles }}
- name: secrets
  mountPath: /etc/berth/secrets
  readOnly: true
{{- end }}
{{- if .clusters }}
{{- range .Values.clusters }}
- name: cluster-{{ .name }}
  mountPath: /etc/berth/clusters/{{ .name }}
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{/* Takes a dict as above, and own: files of the part's own Secret replace those of the same name. */}}
{{- define "berth.volumes" -}}
{{- if .Values.secret.asFiles }}
- name: secrets
  {{- if .own }}
  projected:
    sources:
      - secret: {name: {{ .Values.secret.name }}}
      - secret: {name: {{ .own }}}
  {{- else }}
  secret:
    secretName: {{ .Values.secret.name }}
  {{- end }}
{{- end }}
{{- if .clusters }}
{{- range .Values.clusters }}
- name: cluster-{{ .name }}
  secret:
    secretName: {{ .secret }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "berth.secretsDir" -}}
{{- if .Values.secret.asFiles }}
- name: BERTH_SECRETS_DIR
  value: /etc/berth/secrets
{{- end }}
{{- end -}}

{{/* Probes of parts that show their life by a file. */}}
{{- define "berth.lifeProbes" -}}
# The part works or stands by. While it starts, or waits for its database or a migration, its pod is not ready: a rollout or
# a drain that counted it would end the others, and nobody would do their work.
startupProbe:
  exec:
    command: [test, -e, /tmp/alive.begun]
  periodSeconds: 3
  timeoutSeconds: 10
  failureThreshold: 400
# Touched every five seconds, unless the part hangs, or its database takes requests and does not answer.
livenessProbe:
  exec:
    command: [sh, -c, 'test -n "$(find /tmp/alive -mmin -15)"']
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 4
{{- end -}}
