package wire

const most = 5

var wordForm = formOf(`^[a-z]$`, "a letter")

func listed() []string { return []string{"u", "v"} }

type Trial struct {
	Keyed
	// it is: a | b
	Word string `json:"word,omitempty" form:"wordForm" max:"8" campaign:"default=first"`
	// how deep
	Depth *float64 `json:"depth_m,omitempty" unit:"m" above:"0" max:"2*most" campaign:"max=50,required"`
	// some parts
	Parts []Part `json:"parts" min:"1" max:"most" campaign:"rule=s.parts()"`
	Key   []byte `json:"key" max:"32" campaign:"-"`
	Named Name   `json:"named" campaign:"-"` // x | y
}

// Keyed is embedded.
type Keyed struct {
	Number int `json:"number" min:"1" max:"most" campaign:"-"`
}

// Part is one.
type Part struct {
	// which
	Of string `json:"of,omitempty" words:"listed"`
}

type Name string
