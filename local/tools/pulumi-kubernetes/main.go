// Pulumi's own provider for Kubernetes, built from its Go module.
//
// The module's own program embeds two files that its release process writes and the module does not have
// (cmd/pulumi-resource-kubernetes/generate.go). This one reads them at its start, from the copies in `share`.
//
// The module uses five names of Pulumi's Go SDK for Kubernetes, for its components (yaml/v2, helm/v4, kustomize/v2). The
// folder sdk has these names alone and refuses the components: the SDK with all its kinds takes longer to compile than
// all the rest.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

func main() {
	provider.Serve("kubernetes", version.Version, shared("schema.json"), shared("terraform-mapping.json"))
}

func shared(name string) []byte {
	program, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		log.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(program, "../../share/cmd/pulumi-resource-kubernetes", name))
	if err != nil {
		log.Fatal(err)
	}
	return content
}
