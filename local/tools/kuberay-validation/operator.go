package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	configapi "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/common"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/dashboardclient"
	webhooks "github.com/ray-project/kuberay/ray-operator/pkg/webhooks/v1"
)

const namespace = "default"

// reconcile asks the functions that the operator's controllers and webhooks ask before they make pods.
func reconcile(stored []byte, scheduler string) []string {
	var object metav1.TypeMeta
	if err := decode(stored, &object); err != nil {
		return []string{err.Error()}
	}
	var found findings
	switch object.Kind {
	case "RayCluster":
		var cluster rayv1.RayCluster
		if found.check(decode(stored, &cluster)) {
			found.rayCluster(&cluster, scheduler)
		}
	case "RayJob":
		var job rayv1.RayJob
		if found.check(decode(stored, &job)) {
			found.rayJob(&job, scheduler)
		}
	case "RayService":
		var service rayv1.RayService
		if found.check(decode(stored, &service)) {
			found.rayService(&service, scheduler)
		}
	case "RayCronJob":
		var cronJob rayv1.RayCronJob
		if found.check(decode(stored, &cronJob)) {
			found.rayCronJob(&cronJob, scheduler)
		}
	}
	return found
}

// findings are what was found wrong so far.
type findings []string

// check notes an error, if there is one.
func (found *findings) check(err error) bool {
	if err != nil {
		*found = append(*found, err.Error())
	}
	return err == nil
}

// ask calls a function of the operator; where it panics, so does the operator's reconcile loop, at every try.
func (found *findings) ask(function func() error) {
	defer func() {
		if problem := recover(); problem != nil {
			found.check(fmt.Errorf("panic: %v", problem))
		}
	}()
	found.check(function())
}

// none reports whether there are no findings: otherwise the operator stops here.
func (found findings) none() bool { return len(found) == 0 }

// rayCluster asks what RayClusterReconciler asks (raycluster_controller.go: rayClusterReconcile, reconcileServeService,
// reconcilePods) and the webhook.
func (found *findings) rayCluster(cluster *rayv1.RayCluster, scheduler string) {
	found.ask(func() error { return utils.ValidateRayClusterMetadata(cluster.ObjectMeta) })
	found.ask(func() error { return utils.ValidateRayClusterSpec(&cluster.Spec, cluster.Annotations) })
	found.ask(func() error { return utils.ValidateRayClusterUpgradeOptions(cluster) })
	found.ask(func() error { return uniqueGroups(cluster) })
	if !found.none() {
		return
	}
	if cluster.Annotations[utils.EnableServeServiceKey] == utils.EnableServeServiceTrue {
		found.ask(func() error {
			_, err := common.BuildServeServiceForRayCluster(context.Background(), *cluster)
			return err
		})
	}
	found.schedule(cluster, scheduler)
}

// ownedCluster asks what is asked of a RayCluster that the operator made for another object.
func (found *findings) ownedCluster(owner metav1.Object, crd utils.CRDType, spec *rayv1.RayClusterSpec) {
	cluster := &rayv1.RayCluster{Spec: *spec.DeepCopy()}
	cluster.Labels = map[string]string{utils.RayOriginatedFromCRDLabelKey: utils.RayOriginatedFromCRDLabelValue(crd)}
	cluster.Annotations = owner.GetAnnotations()
	found.ask(func() error { return utils.ValidateRayClusterUpgradeOptions(cluster) })
	found.ask(func() error { return uniqueGroups(cluster) })
}

// rayJob asks what RayJobReconciler asks (rayjob_controller.go: validateRayJob, Reconcile, getSubmitterTemplate).
func (found *findings) rayJob(job *rayv1.RayJob, scheduler string) {
	found.ask(func() error { return utils.ValidateRayJobMetadata(job.ObjectMeta) })
	found.ask(func() error { return utils.ValidateRayJobSpec(job) })
	if job.Spec.RayClusterSpec != nil {
		found.ownedCluster(job, utils.RayJobCRD, job.Spec.RayClusterSpec)
	}
	if !found.none() {
		return
	}
	switch job.Spec.SubmissionMode {
	case rayv1.K8sJobMode:
		found.ask(func() error {
			_, err := common.BuildJobSubmitCommand(job, rayv1.K8sJobMode)
			return err
		})
		if job.Spec.SubmitterPodTemplate != nil {
			found.ask(func() error {
				_ = common.GetSubmitterTemplate(&job.Spec, job.Spec.RayClusterSpec).Spec.Containers[utils.RayContainerIndex]
				return nil
			})
		}
	case rayv1.SidecarMode:
		found.ask(func() error {
			_, err := common.BuildJobSubmitCommand(job, rayv1.SidecarMode)
			return err
		})
	case rayv1.HTTPMode:
		found.ask(func() error {
			_, err := dashboardclient.ConvertRayJobToReq(job)
			return err
		})
	}
	found.schedule(job, scheduler)
}

// rayService asks what RayServiceReconciler asks (rayservice_controller.go: validateRayService, updateServeDeployment,
// reconcileServices).
func (found *findings) rayService(service *rayv1.RayService, scheduler string) {
	found.ask(func() error { return utils.ValidateRayServiceMetadata(service.ObjectMeta) })
	found.ask(func() error { return utils.ValidateRayServiceSpec(service) })
	found.ownedCluster(service, utils.RayServiceCRD, &service.Spec.RayClusterSpec)
	if !found.none() {
		return
	}
	found.ask(func() error {
		config := map[string]any{}
		return yaml.Unmarshal([]byte(service.Spec.ServeConfigV2), &config)
	})
	cluster := &rayv1.RayCluster{ObjectMeta: *service.ObjectMeta.DeepCopy(), Spec: service.Spec.RayClusterSpec}
	metav1.SetMetaDataLabel(
		&cluster.ObjectMeta, utils.RayOriginatedFromCRDLabelKey, utils.RayOriginatedFromCRDLabelValue(utils.RayServiceCRD))
	found.ask(func() error {
		_, err := common.BuildServeServiceForRayService(context.Background(), *service, *cluster)
		return err
	})
	found.schedule(cluster, scheduler)
}

// rayCronJob asks what RayCronJobReconciler asks, and what is asked of the RayJobs that it makes.
func (found *findings) rayCronJob(cronJob *rayv1.RayCronJob, scheduler string) {
	found.ask(func() error { return utils.ValidateRayCronJobSpec(cronJob) })
	job := &rayv1.RayJob{Spec: cronJob.Spec.JobTemplate}
	job.Name = cronJob.Name + "-" + rand.String(5)
	job.Namespace = namespace
	found.rayJob(job, scheduler)
}

func uniqueGroups(cluster *rayv1.RayCluster) error {
	named := cluster.DeepCopy()
	// The webhook checks the name as well, which is asked elsewhere.
	named.Name = "ray"
	_, err := (&webhooks.RayClusterWebhook{}).ValidateCreate(context.Background(), named)
	return err
}

// schedule asks the batch scheduler's plugin of the operator.
func (found *findings) schedule(object metav1.Object, scheduler string) {
	if scheduler == "" {
		return
	}
	found.ask(func() error {
		manager, err := batchscheduler.NewSchedulerManager(
			context.Background(), configapi.Configuration{BatchScheduler: scheduler}, nil, emptyCluster{})
		if err != nil {
			return err
		}
		plugin, err := manager.GetScheduler()
		return errors.Join(err, plugin.DoBatchSchedulingOnSubmission(context.Background(), object))
	})
}

// emptyCluster is a client of an API server that has nothing yet and takes everything.
type emptyCluster struct{ client.Client }

func (emptyCluster) Scheme() *runtime.Scheme { return runtime.NewScheme() }

func (emptyCluster) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (emptyCluster) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

// decode reads JSON as the clients of an API server do.
func decode(text []byte, into any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}
