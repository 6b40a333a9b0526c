package host

// undo is how a change is taken back: plain data, written to disk before the
// change is made. Each part is idempotent, and there is nothing in it that
// was not so when the change was prepared.
type undo struct {
	World     world           `json:"world"`
	Daemon    *daemonUndo     `json:"daemon,omitempty"`
	Mesh      *meshUndo       `json:"mesh,omitempty"`
	Route     *routeUndo      `json:"route,omitempty"`
	Address   *addressUndo    `json:"address,omitempty"`
	Sysctls   []setting       `json:"sysctls,omitempty"`
	Radio     *radioUndo      `json:"radio,omitempty"`
	Aside     *asideUndo      `json:"aside,omitempty"`
	Virtual   *virtualUndo    `json:"virtual,omitempty"`
	Interface *interfaceState `json:"interface,omitempty"`
	Loaded    *loadedUndo     `json:"loaded,omitempty"`
	// AccessPoint is the process that keeps a radio one.
	AccessPoint *daemonUndo   `json:"access_point,omitempty"`
	Offloads    *offloadsUndo `json:"offloads,omitempty"`
}

// addressUndo deletes an address that was not there before.
type addressUndo struct {
	Address
	Index int `json:"index"`
}

// routeUndo takes a route out and puts those with the same key back.
type routeUndo struct {
	Route
	Index  int      `json:"index"`
	Former [][]byte `json:"former,omitempty"` // the kernel's own messages
}

// daemonUndo stops a daemon and takes its routes out.
type daemonUndo struct {
	Name      string   `json:"name"`
	Binary    string   `json:"binary"`
	Dir       string   `json:"dir"` // holds its configuration, whose path marks the process
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	Former    [][]byte `json:"former,omitempty"` // routes of the same protocol that were there before
	// RouteProtocol marks its routes in the kernel.
	RouteProtocol int `json:"route_protocol"`
}

// interfaceState is what setting an interface down, or its IPv6 off, loses.
type interfaceState struct {
	Name      string   `json:"name"`
	Index     int      `json:"index"`
	Up        *bool    `json:"up,omitempty"` // absent: not touched
	MTUBytes  *int     `json:"mtu_bytes,omitempty"`
	Addresses [][]byte `json:"addresses,omitempty"` // the kernel's own messages
	Routes    [][]byte `json:"routes,omitempty"`
}

// system is the machine as the keeper sees it: kernel in production.
type system interface {
	// prepare reads what change id would alter. A *Refused says that it
	// cannot be made here.
	prepare(id uint64, c Change) (undo, error)
	// apply makes the change, or leaves it half made with an error; made
	// again, it changes nothing more.
	apply(c Change, u undo) error
	// void tells that there is nothing left to take back: what the change was
	// made on has gone, or has been made anew under its name.
	void(u undo) bool
	// revert takes the change back, whether it was made, half made or never
	// made. note says what of it had gone by itself.
	revert(u undo) (note string, err error)
}
