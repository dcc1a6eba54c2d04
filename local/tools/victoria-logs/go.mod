module ray-platform.dev/local/tools/victoria-logs

go 1.26.6

require (
	github.com/VictoriaMetrics/VictoriaLogs v1.52.1
	github.com/VictoriaMetrics/VictoriaMetrics v1.151.0
)
