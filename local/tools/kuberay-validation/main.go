// Program kuberay-validation says what an API server and the KubeRay operator make of manifests, by their own functions.
//
// It is given the folder of the CRDs, reads one question as JSON per line and answers each with a line of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/ray-project/kuberay/ray-operator/pkg/features"
)

const longestLine = 64 << 20

type question struct {
	Body           json.RawMessage `json:"body"`
	FeatureGates   map[string]bool `json:"featureGates"`
	BatchScheduler string          `json:"batchScheduler"`
}

type answer struct {
	// Errors of the API server; the operator is not asked where there is one.
	APIServer []string `json:"apiServer"`
	// What each of the operator's functions says first.
	Operator []string `json:"operator"`
}

func main() {
	answers := json.NewEncoder(os.Stdout)
	// The operator's functions print to standard output.
	os.Stdout = os.Stderr
	server, err := newAPIServer(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		runtime.Must(answers.Encode(server.ask(lines.Bytes())))
	}
	runtime.Must(lines.Err())
}

func (server apiServer) ask(line []byte) answer {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{APIServer: []string{err.Error()}}
	}
	stored, errs := server.create(asked.Body)
	if len(errs) > 0 {
		return answer{APIServer: errs}
	}
	runtime.Must(setFeatureGates(asked.FeatureGates))
	return answer{Operator: reconcile(stored, asked.BatchScheduler)}
}

// setFeatureGates sets every gate of the operator, to its default where nothing is said, so that nothing is left of the
// question before.
func setFeatureGates(said map[string]bool) error {
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	gates := map[string]bool{}
	for _, gate := range []featuregate.Feature{
		features.RayClusterStatusConditions,
		features.RayJobDeletionPolicy,
		features.RayMultiHostIndexing,
		features.RayServiceIncrementalUpgrade,
		features.RayCronJob,
		features.AsyncJobInfoQuery,
	} {
		gates[string(gate)] = known[gate].Default
	}
	maps.Copy(gates, said)
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(gates)
}
