// Program pod-validation judges pod templates with the functions of an API server.
//
// It reads a question as JSON from each line, and answers it with a line of JSON: what an API server reports when it
// creates a pod from the template (apis/core/validation), and what Pod Security admission reports at each level.
// Clusters may be older than these functions: what they allow for the first time, older clusters refuse.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kjson "sigs.k8s.io/json"
)

const longestLine = 64 << 20

// RestartAllContainers, and restart rules of sidecars, are allowed from 1.36 on.
const newGate = "RestartAllContainersOnContainerExits"

// From 1.35 on, pods with hostUsers: false may do more. Namespaces without enforce-version have their cluster's version.
var securityVersions = []api.Version{api.MajorMinorVersion(1, 34), api.LatestVersion()}

type answer struct {
	// Why the template is no pod template.
	Decoding []string `json:"decoding"`
	// What the validation of a new pod reports.
	Validation []fault `json:"validation"`
	// What Pod Security reports, by level.
	Security map[api.Level][]string `json:"security"`
}

type fault struct {
	Field  string `json:"field"`
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

func main() {
	// Clusters allow privileged containers; Pod Security decides about them.
	capabilities.Setup(true, 0)
	runtime.Must(utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{newGate: false}))
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	runtime.Must(err)
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		runtime.Must(answers.Encode(judge(evaluator, lines.Bytes())))
	}
	runtime.Must(lines.Err())
}

func judge(evaluator policy.Evaluator, line []byte) answer {
	var template corev1.PodTemplateSpec
	strict, err := kjson.UnmarshalStrict(line, &template)
	if err = errors.Join(append(strict, err)...); err != nil {
		return answer{Decoding: []string{err.Error()}}
	}
	made := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	made.Name, made.Namespace = "pod", "default"
	if made.Spec.ServiceAccountName == "" {
		// As the admission plugin ServiceAccount does.
		made.Spec.ServiceAccountName = "default"
	}
	legacyscheme.Scheme.Default(made)
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(made, &internal, nil); err != nil {
		return answer{Decoding: []string{err.Error()}}
	}
	found := answer{Validation: []fault{}, Security: map[api.Level][]string{}}
	ctx := request.WithNamespace(context.Background(), made.Namespace)
	pod.Strategy.PrepareForCreate(ctx, &internal)
	for _, each := range pod.Strategy.Validate(ctx, &internal) {
		found.Validation = append(found.Validation, fault{each.Field, string(each.Type), each.Detail})
	}
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		found.Security[level] = []string{}
		for _, version := range securityVersions {
			results := evaluator.EvaluatePod(
				api.LevelVersion{Level: level, Version: version}, &metav1.ObjectMeta{Annotations: made.Annotations}, &made.Spec)
			for _, each := range results {
				if !each.Allowed {
					found.Security[level] = append(found.Security[level], each.ForbiddenReason)
				}
			}
		}
	}
	return found
}
