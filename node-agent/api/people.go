package api

import "fieldmesh.dev/fieldmesh/protocols/wire"

func (s *Server) schedule(c *call) (any, error) { return s.node.Schedule(c.run) }

func (s *Server) pushFix(c *call) (any, error) {
	var f wire.Fix
	if err := c.decode(&f); err != nil {
		return nil, err
	}
	return s.node.PushFix(f)
}

func (s *Server) note(c *call) (any, error) {
	var n wire.Note
	if err := c.decode(&n); err != nil {
		return nil, err
	}
	return s.node.Note(c.ctx, c.peer, n)
}

func (s *Server) letIn(c *call) (any, error) {
	var apps wire.Apps
	if err := c.decode(&apps); err != nil {
		return nil, err
	}
	return s.node.LetIn(c.peer, apps)
}
