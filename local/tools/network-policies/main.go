// Program network-policies decides by the cluster's NetworkPolicies which connections of a node's pods there may be.
//
// Netfilter hands it the first packet of each (iptables -j NFQUEUE). The decisions are those of the policy engine of
// sigs.k8s.io/kube-network-policies. That project's own program writes nftables' `queue` statements, which not every
// kernel has; iptables' target is older.
package main

import (
	"context"
	"flag"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/florianl/go-nfqueue/v2"
	"github.com/mdlayher/netlink"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
)

// headers is as many bytes of a packet as are looked at.
const headers = 128

func main() {
	kubeconfig := flag.String("kubeconfig", "", "where the API server is, and as whom to read it")
	node := flag.String("node", "", "name of the node")
	pods := flag.String("pod-network", "", "addresses of pods, as a CIDR")
	queue := flag.Uint("queue", 0, "number of the netfilter queue")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *pods, uint16(*queue)); err != nil {
		klog.Exit(err)
	}
}

func run(ctx context.Context, kubeconfig, node, podNetwork string, queue uint16) error {
	addresses, err := netip.ParsePrefix(podNetwork)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	decisions, err := newDecisions(ctx, client, node, addresses)
	if err != nil {
		return err
	}
	return decisions.serve(ctx, queue)
}

// decisions follows the cluster's pods, namespaces and policies.
type decisions struct {
	engine     *networkpolicy.PolicyEngine
	pods       api.PodInfoProvider
	podNetwork netip.Prefix
}

func newDecisions(
	ctx context.Context, client kubernetes.Interface, node string, podNetwork netip.Prefix,
) (*decisions, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	resolver, err := podinfo.NewInformerResolver(pods.Informer())
	if err != nil {
		return nil, err
	}
	known := podinfo.NewInformerProvider(pods, namespaces, nil, []podinfo.IPResolver{resolver})
	policies := factory.Networking().V1().NetworkPolicies()
	standard := networkpolicy.NewStandardNetworkPolicy(node, namespaces, pods, policies)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return &decisions{
		engine:     networkpolicy.NewPolicyEngine(known, []api.PolicyEvaluator{standard}),
		pods:       known,
		podNetwork: podNetwork,
	}, nil
}

func (d *decisions) serve(ctx context.Context, queue uint16) error {
	packets, err := nfqueue.Open(&nfqueue.Config{
		NfQueue:      queue,
		Flags:        nfqueue.NfQaCfgFlagGSO,
		MaxPacketLen: headers,
		MaxQueueLen:  1024,
		Copymode:     nfqueue.NfQnlCopyPacket,
		WriteTimeout: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer packets.Close()
	each := func(packet nfqueue.Attribute) int {
		verdict := nfqueue.NfDrop
		if d.allowed(ctx, *packet.Payload) {
			verdict = nfqueue.NfAccept
		}
		if err := packets.SetVerdict(*packet.PacketID, verdict); err != nil {
			klog.Error(err)
		}
		return 0
	}
	failed := func(err error) int {
		if ctx.Err() == nil {
			if operation, ok := err.(*netlink.OpError); !ok || !(operation.Timeout() || operation.Temporary()) {
				klog.Error(err)
			}
		}
		return 0
	}
	if err := packets.RegisterWithErrorFunc(ctx, each, failed); err != nil {
		return err
	}
	klog.Infof("deciding on the packets of queue %d", queue)
	<-ctx.Done()
	return nil
}

func (d *decisions) allowed(ctx context.Context, start []byte) bool {
	packet, err := network.ParsePacket(start)
	if err != nil {
		klog.Error(err)
		return false
	}
	// A pod has its address some moments before the API server reports it. Until then its labels are unknown: the
	// packet is dropped, and the next attempt succeeds.
	for _, address := range []string{packet.SrcIP.String(), packet.DstIP.String()} {
		if parsed, err := netip.ParseAddr(address); err != nil || d.podNetwork.Contains(parsed) {
			if _, known := d.pods.GetPodInfoByIP(address); !known {
				return false
			}
		}
	}
	allowed, err := d.engine.EvaluatePacket(ctx, &packet)
	if err != nil {
		klog.Error(err)
		return false
	}
	return allowed
}
