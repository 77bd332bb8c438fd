{{- $pages := slice -}}
{{- range where site.Pages "Params.source" "!=" nil -}}
{{- $pages = $pages | append (dict "title" .Title "url" (strings.TrimPrefix "/" .RelPermalink) "text" (.Plain | htmlUnescape)) -}}
{{- end -}}
var pages = {{ $pages | jsonify }};
