/* SPDX-License-Identifier: Apache-2.0 */
#include "predict/bound.h"

#include <math.h>

/* The bound of this many parties with links of this kind; 0 for fewer than two.
 * Walks back from the last gradient: `rest` is the time that this gradient and
 * all later ones take on the wire, so the step cannot end before ready + rest.
 */
static double of_parties(const struct rueda_model *model, double compute_ns,
                         double wire_bytes, int parties,
                         const struct rueda_sim_wire *wire)
{
    const double share = 2.0 * (parties - 1) / parties;
    const double ns_an_element = share * wire_bytes / wire->bytes_per_s * 1e9;
    const double latency_ns = ceil(log2(parties)) * (double)wire->latency_ns;
    double most = 0.0;
    double rest = 0.0;

    if (parties < 2)
        return 0.0;
    for (int i = model->gradient_count - 1; i >= 0; i--) {
        const struct rueda_model_gradient *gradient = &model->gradients[i];

        rest += (double)gradient->count * ns_an_element;
        most = fmax(most, gradient->ready * compute_ns + rest);
    }
    return most + latency_ns;
}

/* A rack's spine counts as one link as fast as all uplinks of the rack divided
 * by the oversubscription. */
double rueda_bound_ns(const struct rueda_model *model,
                      const struct rueda_sim_net *net, double compute_ns,
                      double wire_bytes)
{
    const struct rueda_sim_wire spine = {
        .latency_ns = net->uplink.latency_ns + net->spine.latency_ns,
        .bytes_per_s = net->uplink.bytes_per_s * net->hosts_per_rack /
                       net->oversubscription,
    };
    const double ports = net->hosts == 1
                             ? of_parties(model, compute_ns, sizeof(float),
                                          net->ranks_per_host, &net->port)
                             : 0.0;
    const double uplinks =
        of_parties(model, compute_ns, wire_bytes, net->hosts, &net->uplink);
    const double spines = of_parties(model, compute_ns, wire_bytes,
                                     rueda_sim_net_racks(net), &spine);

    return fmax(fmax(compute_ns, ports), fmax(uplinks, spines));
}
