-- Whom tenants want to be told of ended instances. The secret is sealed where the server has a key.
create table webhook_subscriptions (
  id          uuid primary key,
  tenant_id   text not null,
  url         text not null,
  events      json not null,
  secret      json not null,
  created_at  timestamptz not null,
  updated_at  timestamptz not null
);

create index webhook_subscriptions_by_tenant on webhook_subscriptions (tenant_id, created_at, id);
-- Serves the list of all tenants.
create index webhook_subscriptions_by_time on webhook_subscriptions (created_at, id);

-- Null: to an address of the deployment.
alter table webhook_outbox add column subscription_id uuid;
alter table webhook_deliveries add column subscription_id uuid;

-- Serves the deletion of a subscription.
create index webhook_outbox_by_subscription on webhook_outbox (subscription_id)
  where subscription_id is not null;
-- Serves the deliveries that a tenant may see.
create index webhook_deliveries_by_subscription
  on webhook_deliveries (subscription_id, attempted_at desc, id desc)
  where subscription_id is not null;
