package measure

import "net/netip"

// tells reports whether one more stranger's socket is to be reported.
func (t *TCP) tells() bool {
	t.strange++
	return t.strange <= strangersMost
}

// whose says to whom a socket belongs.
type whose int

const (
	ofNobody   whose = iota // no flow's
	ofFlow                  // a flow's
	ofStranger              // it reached a flow's server from another address than the flow's client
)

// match finds the flow of a socket by its addresses and ports, and its stream;
// -1 is iperf3's control connection. Data sockets of every flow come first: a
// client may have two flows to one port.
func (t *TCP) match(local, remote netip.AddrPort) (flow string, stream int, of whose) {
	stream = -1
	for i := range t.flows {
		e := &t.flows[i]
		server, client := remote, local
		if e.server {
			server, client = local, remote
		}
		if int(server.Port()) != e.flow.Port || local.Addr() != e.own {
			continue
		}
		port := int(client.Port())
		switch known := remote.Addr() == e.peer; {
		case known && port >= e.first && port < e.end:
			return e.flow.Name, port - e.first, ofFlow
		case known && of != ofFlow:
			flow, of = e.flow.Name, ofFlow
		case !known && e.server && of == ofNobody:
			flow, of = e.flow.Name, ofStranger
		}
	}
	return flow, stream, of
}
