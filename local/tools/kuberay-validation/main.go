// Program kuberay-validation validates manifests with the functions of an API server and of the KubeRay operator.
//
// Its argument is the folder of the CRDs. It reads a question as JSON from each line, and answers it with a line of JSON.
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
	// Errors of the API server; the operator is not called if there is one.
	APIServer []string `json:"apiServer"`
	// The first error of each of the operator's functions.
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

// setFeatureGates sets every gate of the operator. A gate that is not configured gets its default instead of the value
// of the previous question.
func setFeatureGates(configured map[string]bool) error {
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
	maps.Copy(gates, configured)
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(gates)
}
