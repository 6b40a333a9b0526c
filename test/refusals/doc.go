// Package refusals holds the tests of what goes wrong before a trial begins:
// every refusal names the place, what was found and what to do, ends with a
// status that is not zero, and leaves nodes and runs as they were. Real
// programs, agents and daemons in namespaces; what needs none of them is tested
// beside the commands. It has no code of its own.
package refusals
