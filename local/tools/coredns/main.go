// CoreDNS with the plugins that a cluster's DNS needs, and no others.
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func init() {
	// The order in which plugins are chained (coredns, plugin.cfg).
	dnsserver.Directives = []string{"errors", "ready", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
