module ray-platform.dev/local/tools/alertmanager

go 1.25.0

require github.com/prometheus/alertmanager v0.31.1
