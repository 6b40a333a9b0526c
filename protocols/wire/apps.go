package wire

// Apps are all the phones' apps that a node lets in: one that is not in the list
// is no longer let in. The controller gives every node the list, so that a phone
// is paired once and revoked once.
type Apps struct {
	Apps []App `json:"apps" max:"MaxApps"` // no two of a name or a pin
}

// App is one of them, by its key.
type App struct {
	Name string `json:"name" form:"nodeForm"`
	Pin  string `json:"pin" form:"shaForm"` // SHA-256 of its public key
}

// MaxApps bounds the list: far more phones than a campaign has.
const MaxApps = 64

// Validate refuses what is not a key, and two apps of one name or key.
func (a Apps) Validate() error {
	c := &checker{}
	a.bounds(c)
	seen := map[string]bool{}
	for i, app := range a.Apps {
		c.element("apps", i)
		c.that(!seen[app.Name], "name", "%q is there twice", app.Name)
		c.that(!seen[app.Pin], "pin", "it is another app's too")
		seen[app.Name], seen[app.Pin] = true, true
		c.leave()
	}
	return c.err()
}
