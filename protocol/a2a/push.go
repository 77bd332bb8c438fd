package a2a

import (
	"context"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

const noPushText = "this server pushes nothing: subscribe to the task, or ask for it"

// CreateTaskPushConfig implements a2asrv.RequestHandler.
func (h handler) CreateTaskPushConfig(ctx context.Context, req *sdk.PushConfig) (*sdk.PushConfig, error) {
	return answered(ctx, h, func(c *call) (*sdk.PushConfig, error) {
		run, err := h.pushed(ctx, c, req.TaskID)
		if err != nil {
			return nil, err
		}
		made, err := h.opts.Push.CreatePush(ctx, run, configOf(req))
		return shownConfig(run, made), err
	})
}

// GetTaskPushConfig implements a2asrv.RequestHandler.
func (h handler) GetTaskPushConfig(ctx context.Context, req *sdk.GetTaskPushConfigRequest) (*sdk.PushConfig, error) {
	return answered(ctx, h, func(c *call) (*sdk.PushConfig, error) {
		run, err := h.pushed(ctx, c, req.TaskID)
		if err != nil {
			return nil, err
		}
		config, err := h.opts.Push.Push(ctx, run, req.ID)
		if fault.Is(err, fault.NotFound) {
			return nil, refuse(noTask, "the task has no such configuration")
		}
		return shownConfig(run, config), err
	})
}

// ListTaskPushConfigs implements a2asrv.RequestHandler.
func (h handler) ListTaskPushConfigs(ctx context.Context, req *sdk.ListTaskPushConfigRequest) (*sdk.ListTaskPushConfigResponse, error) {
	return answered(ctx, h, func(c *call) (*sdk.ListTaskPushConfigResponse, error) {
		run, err := h.pushed(ctx, c, req.TaskID)
		if err != nil {
			return nil, err
		}
		all, err := h.opts.Push.Pushes(ctx, run)
		answer := &sdk.ListTaskPushConfigResponse{Configs: []*sdk.PushConfig{}}
		for _, config := range all {
			answer.Configs = append(answer.Configs, shownConfig(run, config))
		}
		return answer, err
	})
}

// DeleteTaskPushConfig implements a2asrv.RequestHandler.
func (h handler) DeleteTaskPushConfig(ctx context.Context, req *sdk.DeleteTaskPushConfigRequest) error {
	_, err := answered(ctx, h, func(c *call) (bool, error) {
		run, err := h.pushed(ctx, c, req.TaskID)
		if err != nil {
			return false, err
		}
		err = h.opts.Push.DeletePush(ctx, run, req.ID)
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return true, err
	})
	return err
}

// pushed returns the run of a task whose changes may be pushed.
func (h handler) pushed(ctx context.Context, c *call, id sdk.TaskID) (string, error) {
	if h.opts.Push == nil {
		return "", refuse(noPush, noPushText)
	}
	record, err := h.record(ctx, c, id)
	return record.ID, err
}

func configOf(c *sdk.PushConfig) api.PushConfig {
	config := api.PushConfig{ID: c.ID, URL: c.URL, Token: c.Token}
	if c.Auth != nil {
		config.Scheme, config.Credentials = c.Auth.Scheme, c.Auth.Credentials
	}
	return config
}

// shownConfig is a push as clients see it. Its token and credentials are not shown.
func shownConfig(run string, p api.Push) *sdk.PushConfig {
	shown := &sdk.PushConfig{TaskID: sdk.TaskID(run), ID: p.ID, URL: p.URL}
	if p.Scheme != "" {
		shown.Auth = &sdk.PushAuthInfo{Scheme: p.Scheme}
	}
	return shown
}
