package door

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Crowd is a net.Listener for a service that anybody may ask: of all who are not known to it, at most a number are
// connected. One more takes the place of the one that has been there longest, of the address that has the most: who
// holds connections open keeps nobody out.
type Crowd struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*guest // who are not known, in the order in which they came
}

// guest is a connection of a crowd.
type guest struct {
	net.Conn
	from  netip.Addr
	leave func()
}

// NewCrowd lets a listener have at most so many connections of whom it does not know.
func NewCrowd(l net.Listener, most int) *Crowd { return &Crowd{Listener: l, most: most} }

// Accept returns the next connection.
func (c *Crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, from: addressOf(conn)}
	g.leave = sync.OnceFunc(func() { c.forget(func(o *guest) bool { return o == g }) })
	if out := c.enter(g); out != nil {
		out.leave()
		abort(out.Conn)
	}
	return g, nil
}

// enter counts a connection, and says whose place it takes.
func (c *Crowd) enter(g *guest) (out *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		of := map[netip.Addr]int{}
		for _, o := range c.open {
			of[o.from]++
		}
		out = oldest(c.open, func(o *guest) int { return of[o.from] })
	}
	c.open = append(c.open, g)
	return out
}

// Know lets whoever is connected from an address ("host:port") keep its place.
func (c *Crowd) Know(remote string) {
	c.forget(func(g *guest) bool { return g.RemoteAddr().String() == remote })
}

func (c *Crowd) forget(which func(*guest) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, which)
}

// Close gives the connection's place back.
func (g *guest) Close() error {
	g.leave()
	return g.Conn.Close()
}

// abort ends a connection so that nothing of it is left in the kernel.
func abort(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}
