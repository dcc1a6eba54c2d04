// Package v4 has the inputs of the component for Helm charts.
package v4

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// RepositoryOpts is where a chart comes from.
type RepositoryOpts struct {
	CaFile   pulumi.AssetOrArchive `pulumi:"caFile"`
	CertFile pulumi.AssetOrArchive `pulumi:"certFile"`
	KeyFile  pulumi.AssetOrArchive `pulumi:"keyFile"`
	Password *string               `pulumi:"password"`
	Repo     *string               `pulumi:"repo"`
	Username *string               `pulumi:"username"`
}

// RepositoryOptsInput is the same with values that are not known yet.
type RepositoryOptsInput interface{ pulumi.Input }

// PostRenderer is a program that changes a chart's manifests.
type PostRenderer struct {
	Args    []string `pulumi:"args"`
	Command string   `pulumi:"command"`
}

// PostRendererInput is the same with values that are not known yet.
type PostRendererInput interface{ pulumi.Input }
