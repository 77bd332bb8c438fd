package client

import (
	"context"
	"net/http"

	"github.com/agent-on-demand/aod/api"
)

// Workers manages the machines that take runs from a server, for who manages the whole server.
type Workers struct{ conn *conn }

// List lists the workers by their names, also those that are only invited.
func (c Workers) List(ctx context.Context) ([]api.Worker, error) {
	list, err := got[struct{ Workers []api.Worker }](ctx, c.conn, to(http.MethodGet, "workers"))
	return list.Workers, err
}

// Demand returns how many runs wait for machines, by what they need of them.
func (c Workers) Demand(ctx context.Context) ([]api.Demand, error) {
	list, err := got[struct{ Demand []api.Demand }](ctx, c.conn, to(http.MethodGet, "demand"))
	return list.Demand, err
}

// Add invites a worker. What it returns has the token with which a machine joins: it can't be read again. It doesn't
// have the server's address, which the worker may know by another one than this client.
func (c Workers) Add(ctx context.Context, name string) (api.WorkerJoin, error) {
	r := to(http.MethodPost, "workers").with(map[string]string{"name": name})
	r.once = true
	return got[api.WorkerJoin](ctx, c.conn, r)
}

// Drain has a worker take nothing new. What it runs goes on.
func (c Workers) Drain(ctx context.Context, name string) (api.Worker, error) {
	return got[api.Worker](ctx, c.conn, to(http.MethodPost, "workers", name, "drain"))
}

// Undrain has a worker that was drained take runs again.
func (c Workers) Undrain(ctx context.Context, name string) (api.Worker, error) {
	return got[api.Worker](ctx, c.conn, to(http.MethodPost, "workers", name, "undrain"))
}

// Remove revokes what a worker has joined with, or may join with.
func (c Workers) Remove(ctx context.Context, name string) error {
	r := to(http.MethodDelete, "workers", name)
	r.once = true
	_, err := c.conn.call(ctx, r, nil)
	return err
}
