module ray-platform.dev/local/tools/prom-label-proxy

go 1.23.0

require github.com/prometheus-community/prom-label-proxy v0.11.1
