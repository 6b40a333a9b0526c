// Package campaigns drives the campaigns that ship, at the scales that they
// declare, as a person does: their smoke scales in every test, the rest in the
// soak. It judges whether they can be driven and what they checked of themselves,
// never a figure.
package campaigns
