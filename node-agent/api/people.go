package api

import "fieldmesh.dev/fieldmesh/protocols/wire"

func (s *Server) schedule(c *call) (any, error) { return s.node.Schedule(c.run) }

func (s *Server) pushFix(c *call, f wire.Fix) (any, error) { return s.node.PushFix(c.peer, f) }

func (s *Server) pushWiFi(c *call, w wire.WiFiReading) (any, error) {
	return s.node.PushWiFi(c.peer, w)
}

func (s *Server) note(c *call, n wire.Note) (any, error) { return s.node.Note(c.ctx, c.peer, n) }

func (s *Server) letIn(c *call, apps wire.Apps) (any, error) { return s.node.LetIn(c.peer, apps) }
