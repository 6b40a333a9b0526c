package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/streets"
)

// streetsMost bounds the paths of a drawing, in bytes.
const streetsMost = 280_000

// streetsKept lets a browser keep what it was sent of a street map, for a few minutes of a session.
const streetsKept = "private, max-age=600"

// Streets is what the map has in a box that a viewer shows.
type Streets struct {
	*streets.Drawing
	Failure string `json:"failure,omitempty"` // why the map cannot be drawn
}

// atlas answers about the street map of a run. It opens the file each time: one may be put
// there, or another, while the page is looked at. Viewers take turns: a tile may be large.
type atlas struct {
	dir  string
	turn chan struct{}
}

func newAtlas(dir string) *atlas { return &atlas{dir: dir, turn: make(chan struct{}, 1)} }

// use gives the map to a function; without a map it is not called.
func (a *atlas) use(r *http.Request, look func(*streets.File) error) (err error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	m, err := streets.Open(a.dir)
	if err != nil || m == nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return look(m)
}

// draw answers /streets?west=…&south=…&east=…&north=…, with no content where there is no map.
func (a *atlas) draw(w http.ResponseWriter, r *http.Request) {
	var b streets.Box
	var errs []error
	for name, into := range map[string]*float64{"west": &b.West, "south": &b.South, "east": &b.East,
		"north": &b.North} {
		v, err := strconv.ParseFloat(r.URL.Query().Get(name), 64)
		*into = v
		errs = append(errs, err)
	}
	if errors.Join(errs...) != nil || !b.Valid() {
		http.Error(w, "west, south, east and north are degrees of a box", http.StatusBadRequest)
		return
	}
	var s Streets
	err := a.use(r, func(m *streets.File) (err error) {
		s.Drawing, err = m.Draw(b, streetsMost)
		return err
	})
	switch {
	case err != nil:
		s = Streets{Failure: err.Error()}
	case s.Drawing == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.Header().Set("Cache-Control", streetsKept)
	}
	text, err := json.Marshal(s)
	if err != nil {
		http.Error(w, fmt.Sprintf("the street map cannot be sent: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a viewer that is gone misses nothing
}

// picture answers /picture?zoom=…&x=…&y=…, a tile of a map of pictures.
func (a *atlas) picture(w http.ResponseWriter, r *http.Request) {
	zoom, zerr := strconv.Atoi(r.URL.Query().Get("zoom"))
	x, xerr := strconv.Atoi(r.URL.Query().Get("x"))
	y, yerr := strconv.Atoi(r.URL.Query().Get("y"))
	if errors.Join(zerr, xerr, yerr) != nil {
		http.Error(w, "zoom, x and y are numbers", http.StatusBadRequest)
		return
	}
	var picture []byte
	var media string
	err := a.use(r, func(m *streets.File) (err error) {
		picture, media, err = m.Picture(zoom, x, y)
		return err
	})
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case picture == nil:
		http.Error(w, "the street map has no such picture", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", media)
		w.Header().Set("Cache-Control", streetsKept)
		_, _ = w.Write(picture) // a viewer that is gone misses nothing
	}
}
