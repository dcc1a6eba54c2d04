// Command argocd runs two of Argo CD's programs, by their names as its first argument: those that render a repository
// and apply it. Argo CD's own command has its API server, its client and others as well, of which nothing is needed.
package main

import (
	"log"
	"os"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
)

func main() {
	command := controller.NewCommand()
	if os.Args[1] == "repo-server" {
		command = reposerver.NewCommand()
	}
	command.SetArgs(os.Args[2:])
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
