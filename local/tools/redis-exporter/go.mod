module ray-platform.dev/local/tools/redis-exporter

go 1.24.0

require github.com/oliver006/redis_exporter v1.74.0
