-- The creation of the instance has taken a free slot: the request stands for the slot, which has no row in permits.
alter table permit_requests add column has_slot boolean not null default false;

-- Exactly the order in which a key admits its instances. Each row has an entry in one of the two.
drop index permit_requests_order;
create index permit_requests_order on permit_requests (key_id, created_at, instance_id) where not has_slot;
create index permit_requests_slots on permit_requests (key_id) where has_slot;
