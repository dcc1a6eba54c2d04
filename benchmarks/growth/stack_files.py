"""Stack files of any number of tenants."""

TENANTS_OF_A_DEPARTMENT = 20

HEAD = """\
config:
  ray-platform:access: {{clusterAdmins: [group:ray-platform]}}
  ray-platform:nodes:
    - {{pool: a100, count: {nodes}, cpu: 96, memory: 1100Gi, gpus: 8, gpuHourPrice: 2.2}}
"""

TENANT = """\
    - name: tenant-{number}
      owner: {department}
      admins: [group:leads-{number}]
      users: [group:people-{number}]
      quota: {{gpus: 8, cpu: 96, memory: 1000Gi, pods: 20}}
"""

CLUSTER = """\
      clusters:
        - name: cluster
          rayVersion: 2.60.0
          image: rayproject/ray:2.60.0
          head: {{cpu: 4, memory: 32Gi}}
          workers: {{pool: a100, profile: tiling}}
          idleTimeout: 5m
          env: {{EXPERIMENT: "{number}"}}
"""

QUEUE_OF_A_DEPARTMENT = """\
    - {{name: department-{number}, guarantee: {{gpus: {guarantee}}}, capability: {{gpus: {capability}}}}}
"""

QUEUE = "      queue: {{parent: {department}, guarantee: {{gpus: 2}}, capability: {{gpus: 8}}}}\n"


def stack_file(tenants: int, queues: bool = False) -> str:
    """A stack file with this number of tenants, each with a RayCluster and a node.

    `queues`: the stack has Volcano with a queue for each tenant below that of its department, and the RayClusters store
    their state in Redis.
    """
    lines = [HEAD.format(nodes=tenants)]
    if queues:
        lines.append("  ray-platform:scheduler: {volcano: {}}\n")
        lines.append("  ray-platform:redis: {}\n")
        lines.append("  ray-platform:queues:\n")
        for number, first in enumerate(range(0, tenants, TENANTS_OF_A_DEPARTMENT)):
            members = min(TENANTS_OF_A_DEPARTMENT, tenants - first)
            lines.append(QUEUE_OF_A_DEPARTMENT.format(number=number, guarantee=2 * members, capability=8 * members))
    lines.append("  ray-platform:tenants:\n")
    for number in range(tenants):
        department = f"department-{number // TENANTS_OF_A_DEPARTMENT}"
        lines.append(TENANT.format(number=number, department=department))
        if queues:
            lines.append(QUEUE.format(department=department))
        lines.append(CLUSTER.format(number=number))
        if queues:
            lines.append("          faultTolerance: true\n")
    return "".join(lines)
