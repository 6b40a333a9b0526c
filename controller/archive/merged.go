package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
)

// shardDir is where a merged run keeps what a shard signed.
func shardDir(number int) string { return filepath.Join(shardsDir, strconv.Itoa(number)) }

// ShardSigned says by whom a shard of a merged run was signed.
type ShardSigned struct {
	Shard     Shard
	Run, Plan Signature
}

// Shards says by whom each shard was signed that a run was merged of.
func (a *Archive) Shards() (out []ShardSigned, err error) {
	for n := 1; n <= a.info.Merged; n++ {
		dir, s := shardDir(n), ShardSigned{Shard: Shard{Number: n, Of: a.info.Merged}}
		run, err := a.disk.signature(filepath.Join(dir, manifestFile), filepath.Join(dir, manifestSignature), signsRun)
		if err != nil {
			return nil, err
		}
		s.Run = run
		if s.Plan, err = a.disk.signature(filepath.Join(dir, planSums), filepath.Join(dir, planSignature),
			signsPlan); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// shards holds a merged run against what its shards signed.
func (c *check) shards() {
	for n := 1; n <= c.info.Merged; n++ {
		if rel := filepath.Join(shardDir(n), manifestFile); !c.disk.exists(rel) {
			c.found(rel, Missing, fmt.Sprintf("the run was merged of %d shards", c.info.Merged))
		}
	}
	names, err := c.disk.names(shardsDir)
	if err != nil {
		c.found(shardsDir, Unreadable, err.Error())
	}
	for _, name := range names {
		dir := filepath.Join(shardsDir, name)
		c.signature(filepath.Join(dir, manifestFile), filepath.Join(dir, manifestSignature), signsRun)
		c.signature(filepath.Join(dir, planSums), filepath.Join(dir, planSignature), signsPlan)
		if c.info.Merged > 0 { // earlier versions kept of the plan no more than its checksums
			c.shardIs(name, dir)
			c.plan(dir)
		}
		c.shard(filepath.Join(dir, manifestFile))
	}
}

// shardIs compares what a shard says that it is with its place in the whole.
func (c *check) shardIs(name, dir string) {
	rel := filepath.Join(dir, runFile)
	var info stored
	if err := c.disk.readJSON(rel, &info); err != nil {
		c.foundUnreadable(rel, err)
		return
	}
	if s := info.Shard; s == nil || s.Of != c.info.Merged || strconv.Itoa(s.Number) != name || info.Run != c.info.Run {
		c.found(rel, Changed, fmt.Sprintf("it is not of shard %s/%d of run %s", name, c.info.Merged, c.info.Run))
	}
	rel = filepath.Join(dir, scheduleFile)
	if !c.disk.exists(rel) {
		return
	}
	own, err := c.disk.schedule(rel)
	whole, werr := c.disk.schedule(scheduleFile)
	if errors.Join(err, werr) != nil || !reflect.DeepEqual(own, whole) {
		c.found(rel, Changed, "the shard's schedule is not that of the run")
	}
}

// shard compares the attempts that a shard signed with those of the whole.
func (c *check) shard(manifest string) {
	if c.info.Merged > 0 && !c.disk.exists(manifest) {
		return // as was said
	}
	named, err := c.disk.named(manifest)
	if err != nil {
		c.found(manifest, Unreadable, err.Error())
		return
	}
	for rel, want := range named {
		if _, in := attemptOf(rel); !in {
			continue // what lies between trials is put together of all shards
		}
		switch sum, _, err := c.disk.sum(rel); {
		case errors.Is(err, fs.ErrNotExist):
			c.found(rel, Missing, "a shard's manifest names it")
		case err != nil:
			c.found(rel, Unreadable, err.Error())
		case sum != want:
			c.found(rel, Changed, "its SHA-256 is not that of the shard's manifest")
		}
	}
}
