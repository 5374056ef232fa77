/** Every command against a real server: what it prints for people and for programs, and how it ends. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { COMMANDS } from '../../cli/commands.js';
import type { BulkJob, KeyMinted, Release, TaskInstance } from '../../client/src/index.js';
import { eventually, step, useSharedApi } from '../helpers/api.js';
import { cliWorld } from '../helpers/cli.js';

const api = useSharedApi();
const tenant = api.tenant();
const cli = cliWorld(() => ({ url: api.url, tenant: tenant.name }));

/** Which commands were run here, or in the file of their own: none may be forgotten. */
const tried = new Set([
  'start',
  'dev',
  'doctor',
  'completion',
  'instances watch',
  'cells proxy-config',
]);

function trying(...names: readonly string[]): void {
  for (const name of names) tried.add(name);
}

function file(name: string, content: unknown): string {
  const place = path.join(cli.home, name);
  writeFileSync(place, typeof content === 'string' ? content : JSON.stringify(content));
  return place;
}

const greet = (message: string) => step('greet', 'log', { params: { message } });

test('a definition is stored once, and a changed one becomes the next version', async () => {
  trying('sequences apply', 'sequences list', 'sequences get');
  const hello = file('hello.json', { name: 'hello', blocks: [greet('one')] });
  assert.match(await cli.ok(['sequences', 'apply', hello]), /^hello v1: created\n$/);
  assert.match(await cli.ok(['sequences', 'apply', hello]), /^hello v1: unchanged\n$/);
  file('hello.json', { name: 'hello', blocks: [greet('two')] });
  assert.match(
    await cli.ok(['sequences', 'apply', hello, '--dry-run']),
    /^hello v2: a new version\n/,
  );
  assert.match(
    await cli.ok(['sequences', 'apply', hello]),
    /^hello v2: a new version\n {2}.*greet/,
  );
  const stored = await cli.json<{ version: number }[]>(['sequences', 'list']);
  assert.deepEqual(
    stored.map(({ version }) => version),
    [2, 1],
  );
  assert.equal((await cli.json<{ version: number }>(['sequences', 'get', 'hello'])).version, 2);
});

test('a number that is taken by another definition is refused, and says what is different', async () => {
  const place = file('pinned.json', { name: 'pinned', version: 1, blocks: [greet('one')] });
  await cli.ok(['sequences', 'apply', place]);
  file('pinned.json', { name: 'pinned', version: 1, blocks: [greet('two')] });
  const { code, err } = await cli.run(['sequences', 'apply', place]);
  assert.equal(code, 6);
  assert.match(err, /version 1 of pinned is stored already.*greet/);
});

test('definitions may be YAML, lists of them, folders, or come by the standard input', async () => {
  const yaml = 'name: yaml\nblocks:\n  - { type: step, id: a, handler: noop }\n';
  assert.match(await cli.ok(['sequences', 'apply', file('one.yaml', yaml)]), /^yaml v1: created/);
  const list = ['left', 'right'].map((name) => ({ name, blocks: [greet(name)] }));
  assert.match(await cli.ok(['sequences', 'apply', file('two.json', list)]), /left v1.*\nright v1/);
  const input = JSON.stringify({ name: 'piped', blocks: [greet('x')] });
  assert.match(await cli.ok(['sequences', 'apply', '-'], { input }), /^piped v1: created/);
});

test('validation tells every mistake with its place, and ends with 1', async () => {
  trying('sequences validate');
  const bad = file('bad.json', {
    name: 'bad',
    blocks: [{ type: 'stp', id: 'a' }, step('b', 'log', { params: {}, retri: {} })],
  });
  const { code, err } = await cli.run(['sequences', 'validate', bad]);
  assert.equal(code, 1);
  assert.match(err, /blocks\[0\]\.type.*did you mean step\?/);
  const good = file('good.json', { name: 'good', blocks: [greet('hi')] });
  assert.equal(await cli.ok(['sequences', 'validate', good]), 'good: valid\n');
});

test('two versions are compared by what changes for a new instance', async () => {
  trying('sequences diff');
  const { code, out } = await cli.run(['sequences', 'diff', 'hello', '1', '2']);
  assert.equal(code, 1);
  assert.match(out, /behavioral +step greet: params change: message/);
  assert.equal((await cli.run(['sequences', 'diff', 'hello', '2', '2'])).code, 0);
  assert.equal((await cli.run(['sequences', 'diff', 'hello', '9'])).code, 3);
});

test('an instance is started by name, and its id is all that standard output holds', async () => {
  trying('instances start', 'instances get', 'instances list');
  const out = await cli.ok([
    'instances',
    'start',
    'hello',
    '--data',
    '{"name":"Ada"}',
    '--key',
    'k1',
  ]);
  assert.match(out, /^[\da-f-]{36}\n$/);
  const id = out.trim();
  const again = await cli.run(['instances', 'start', 'hello', '--key', 'k1']);
  assert.equal(again.out, out);
  const instance = await cli.json<TaskInstance>(['instances', 'get', id]);
  assert.deepEqual(instance.context.data, { name: 'Ada' });
  assert.match(await cli.ok(['instances', 'get', id]), /^id {2,}[\da-f-]{36}\n/);
  assert.match(await cli.ok(['instances', 'list', '--sequence', 'hello']), /hello v2/);
  const listed = await cli.json<TaskInstance[]>(['instances', 'list', '--sequence', 'hello']);
  assert.deepEqual(
    listed.map((one) => one.id),
    [id],
  );
});

test('waiting for an instance ends with 0 when it completes, and with 1 when it fails', async () => {
  const failing = file('fails.json', {
    name: 'fails',
    blocks: [step('no', 'fail', { params: { message: 'too bad' } })],
  });
  await cli.ok(['sequences', 'apply', failing]);
  assert.match(await cli.ok(['instances', 'start', 'hello', '--wait']), /completed/);
  const { code, out } = await cli.run(['instances', 'start', 'fails', '--wait']);
  assert.equal(code, 1);
  assert.match(out, /failed[\s\S]*no: .*too bad/);
  const late = file('waits.json', { name: 'waits', blocks: [step('w', 'nobody-does-this')] });
  await cli.ok(['sequences', 'apply', late]);
  const waiting = await cli.run(['instances', 'start', 'waits', '--wait', '--timeout', '500ms']);
  assert.equal(waiting.code, 8);
});

test('what an instance does is shown as a tree and as an explanation', async () => {
  trying('instances tree', 'instances explain');
  const id = (await cli.ok(['instances', 'start', 'waits'])).trim();
  assert.match(await cli.ok(['instances', 'tree', id]), /^waiting +w step/m);
  const told = await cli.ok(['instances', 'explain', id]);
  assert.match(told, /^waiting since [\s\S]*no worker polls for the handler nobody-does-this/);
});

test('instances are paused, resumed, sent signals, cancelled and retried by their ids', async () => {
  trying(
    'instances pause',
    'instances resume',
    'instances signal',
    'instances cancel',
    'instances retry',
  );
  const id = (await cli.ok(['instances', 'start', 'waits'])).trim();
  assert.equal(await cli.ok(['instances', 'pause', id]), `${id} paused\n`);
  await tenant.until(id, 'paused');
  await cli.ok(['instances', 'resume', id]);
  await cli.ok(['instances', 'signal', 'approve', id, '--payload', '{"by":"me"}']);
  const sent = await tenant.get<{ signal_type: string }[]>(
    `/instances/${id}/signals?signal_type=custom:approve`,
  );
  assert.equal(sent.body.length, 1);
  const none = '00000000-0000-0000-0000-000000000000';
  const { code, out, err } = await cli.run(['instances', 'cancel', id, none]);
  assert.equal(code, 3);
  assert.equal(out, `${id} cancelled\n`);
  assert.match(err, new RegExp(none));
  await tenant.until(id, 'cancelled');
  const failed = (await cli.json<{ id: string }>(['instances', 'start', 'fails'])).id;
  await tenant.until(failed, 'failed');
  assert.equal(await cli.ok(['instances', 'retry', failed]), `${failed} retried\n`);
});

test('many are changed only with --yes where nobody can be asked, and the count comes first', async () => {
  trying('jobs list', 'jobs get', 'jobs cancel');
  const mine = file('many.json', { name: 'many', blocks: [step('w', 'nobody-does-this')] });
  await cli.ok(['sequences', 'apply', mine]);
  for (let i = 0; i < 3; i++) await cli.ok(['instances', 'start', 'many']);
  const cancel = ['instances', 'cancel', '--sequence', 'many'];
  const refused = await cli.run(cancel);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /3 instances would be cancelled, and nobody is there to agree/);
  assert.equal(await cli.ok([...cancel, '--dry-run']), '3 instances would be cancelled.\n');
  assert.equal(await cli.ok([...cancel, '--yes']), '3 instances cancelled.\n');
  assert.equal(await cli.ok([...cancel, '--yes']), '0 instances cancelled.\n');
  const [job] = await cli.json<BulkJob[]>(['jobs', 'list']);
  assert.ok(job);
  assert.equal((await cli.json<BulkJob>(['jobs', 'get', job.id])).applied, 3);
  assert.equal((await cli.run(['jobs', 'cancel', job.id])).code, 6);
});

test('a change that names nothing is refused, whatever it would do', async () => {
  const { code, err } = await cli.run(['instances', 'cancel', '--yes']);
  assert.equal(code, 2);
  assert.match(err, /no instance was named and nothing selects any/);
  assert.equal((await cli.run(['dlq', 'drain', 'x', '--sequence', 'y', '--yes'])).code, 2);
  assert.equal((await cli.run(['instances', 'cancel', 'x', '--dry-run'])).code, 2);
});

test('failed instances are listed with their reason, retried and given up', async () => {
  trying('dlq list', 'dlq retry', 'dlq drain', 'failures list');
  const id = (await cli.ok(['instances', 'start', 'fails'])).trim();
  await tenant.until(id, 'failed');
  const live = (await cli.ok(['instances', 'start', 'waits'])).trim();
  assert.equal((await cli.run(['dlq', 'drain', live])).code, 6);
  await tenant.until(live, 'waiting');
  assert.match(await cli.ok(['dlq', 'list', '--sequence', 'fails']), /fails v1 +no +too bad/);
  assert.match(await cli.ok(['failures', 'list', '--sequence', 'fails']), /fails v1 +no .*too bad/);
  assert.match(
    await cli.ok(['dlq', 'retry', '--sequence', 'fails', '--yes']),
    /instances? retried/,
  );
  await tenant.until(id, 'failed');
  await eventually(async () => {
    assert.match(await cli.ok(['dlq', 'drain', '--sequence', 'fails', '--yes']), /cancelled/);
    assert.deepEqual(await cli.json(['dlq', 'list', '--sequence', 'fails']), []);
  });
});

test('an instance goes over to another version, or says why not', async () => {
  trying('instances migrate');
  const place = file('moves.json', { name: 'moves', blocks: [step('w', 'nobody-does-this')] });
  await cli.ok(['sequences', 'apply', place]);
  const id = (await cli.ok(['instances', 'start', 'moves'])).trim();
  await tenant.until(id, 'waiting');
  file('moves.json', { name: 'moves', blocks: [step('w', 'nobody-does-this'), greet('then')] });
  await cli.ok(['sequences', 'apply', place]);
  const migrate = ['instances', 'migrate', id, '--to-version', '2'];
  assert.match(await cli.ok([...migrate, '--dry-run']), /not migrated: version 1 → 2, automatic/);
  assert.match(await cli.ok(migrate), / migrated: version 1 → 2, automatic/);
});

test('the instances of a version go over to another one, once it was said how many can', async () => {
  trying('sequences migrate');
  const gate = (prompt: string) =>
    step('gate', 'noop', { wait_for_input: { prompt, choices: [{ label: 'Yes', value: 'yes' }] } });
  const stored = file('gates.json', { name: 'gates', blocks: [gate('Go?')] });
  await cli.ok(['sequences', 'apply', stored]);
  const ids = await Promise.all([1, 2, 3].map(() => cli.ok(['instances', 'start', 'gates'])));
  for (const id of ids) await tenant.until(id.trim(), 'waiting');
  file('gates.json', { name: 'gates', blocks: [gate('Shall it go?')] });
  await cli.ok(['sequences', 'apply', stored]);
  const move = ['sequences', 'migrate', 'gates', '--from', '1', '--state', 'waiting'];
  assert.match(
    await cli.ok([...move, '--dry-run']),
    /^3 instances would be migrated from version 1 to 2\.\n$/,
  );
  const refused = await cli.run(move);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /3 instances would be migrated .* nobody is there to agree/);
  const total = await cli.json<{ migrated: number; migrations: unknown[] }>([...move, '--yes']);
  assert.deepEqual([total.migrated, total.migrations.length], [3, 3]);
  assert.match(await cli.ok([...move, '--yes']), /^0 instances would be migrated/);
  await cli.ok(['instances', 'cancel', '--sequence', 'gates', '--yes']);
  assert.equal((await cli.run(['sequences', 'migrate', 'gates', '--from', '9'])).code, 3);
  assert.equal((await cli.run(['sequences', 'migrate', 'gates'])).code, 2);
});

test('a definition that is the same JSON in another order is stored already, as for sequences in code', async () => {
  const blocks = [greet('one')];
  await cli.ok(['sequences', 'apply', file('same.json', { name: 'same', blocks })]);
  const turned = blocks.map((block) => Object.fromEntries(Object.entries(block).reverse()));
  const place = file('same.json', { blocks: turned, name: 'same' });
  assert.equal(await cli.ok(['sequences', 'apply', place]), 'same v1: unchanged\n');
  file('same.json', { name: 'same', blocks: [{ ...blocks[0], cancellable: true }] });
  assert.match(
    await cli.ok(['sequences', 'apply', place]),
    /^same v2: a new version\n {2}written in another way/,
  );
});

test('what people are asked is listed and answered', async () => {
  trying('approvals list', 'approvals answer');
  const asks = {
    name: 'asks',
    blocks: [
      step('ok', 'noop', {
        wait_for_input: {
          prompt: 'Ship it?',
          choices: [
            { label: 'Yes', value: 'yes' },
            { label: 'No', value: 'no' },
          ],
        },
      }),
    ],
  };
  await cli.ok(['sequences', 'apply', file('asks.json', asks)]);
  const id = (await cli.ok(['instances', 'start', 'asks'])).trim();
  const approval = await eventually(async () => {
    const [found] = await cli.json<{ id: string; prompt: string }[]>(['approvals', 'list']);
    assert.ok(found);
    return found;
  });
  assert.equal(approval.prompt, 'Ship it?');
  assert.match(await cli.ok(['approvals', 'list']), /Ship it\? +yes, no/);
  assert.match(
    await cli.ok(['approvals', 'answer', approval.id, 'yes']),
    /^ok was answered with yes\.\n$/,
  );
  await tenant.until(id, 'completed');
});

test('tasks and workers are listed', async () => {
  trying('tasks list', 'workers list', 'queues list');
  await cli.ok(['instances', 'start', 'waits']);
  await eventually(async () =>
    assert.match(
      await cli.ok(['tasks', 'list', '--state', 'pending']),
      /pending +nobody-does-this/,
    ),
  );
  const [queue] = (
    await cli.json<{ handler: string; waiting: number; workers: number }[]>(['queues', 'list'])
  ).filter(({ handler }) => handler === 'nobody-does-this');
  assert.ok((queue?.waiting ?? 0) > 0 && queue?.workers === 0);
  await tenant.poll('something-else', { worker_id: 'worker-of-the-cli' });
  await eventually(async () =>
    assert.match(await cli.ok(['workers', 'list']), /worker-of-the-cli +yes/),
  );
});

test('a schedule is made, shown, changed, fired and deleted', async () => {
  trying(
    'cron create',
    'cron list',
    'cron get',
    'cron update',
    'cron run',
    'cron next',
    'cron delete',
  );
  const made = await cli.ok([
    'cron',
    'create',
    '0 9 * * mon-fri',
    'hello',
    '--timezone',
    'Europe/Berlin',
  ]);
  const [id = ''] = made.split(' ');
  assert.match(made, / fires next at 2/);
  assert.match(await cli.ok(['cron', 'list']), /0 9 \* \* mon-fri +hello +in /);
  assert.match(await cli.ok(['cron', 'update', id, '--disable']), /is disabled\.\n$/);
  assert.match(await cli.ok(['cron', 'get', id]), /enabled +false/);
  assert.equal((await cli.ok(['cron', 'next', id, '--count', '3'])).trim().split('\n').length, 3);
  assert.match(await cli.ok(['cron', 'run', id]), /^[\da-f-]{36}\n$/);
  assert.match(await cli.ok(['cron', 'delete', id]), /is deleted/);
  assert.equal((await cli.run(['cron', 'get', id])).code, 3);
});

test('a release is drafted, validated, led in, judged and ended', async () => {
  trying(
    ...[
      'create',
      'list',
      'status',
      'validate',
      'canary',
      'evaluate',
      'pause',
      'promote',
      'rollback',
    ].map((name) => `releases ${name}`),
  );
  const versions = await cli.json<{ id: string; name: string; version: number }[]>([
    'sequences',
    'list',
  ]);
  const idOf = (number: number) =>
    versions.find(({ name, version }) => name === 'hello' && version === number)?.id ?? '';
  const create = ['releases', 'create', '--baseline', idOf(1), '--candidate', idOf(2)];
  const id = (await cli.ok([...create, '--gate', 'error_rate:0.05:20'])).trim();
  assert.match(await cli.ok(['releases', 'list']), /draft +hello +1 → 2/);
  const listed = (...more: string[]) => cli.json<Release[]>(['releases', 'list', ...more]);
  assert.equal((await listed('--state', 'draft', '--sequence', 'hello')).length, 1);
  assert.deepEqual(await listed('--state', 'canary'), []);
  assert.deepEqual(await listed('--sequence', 'other'), []);
  assert.equal((await cli.json<Release>(['releases', 'status', id])).state, 'draft');
  await cli.ok(['releases', 'validate', id, '--skip']);
  assert.match(await cli.ok(['releases', 'canary', id, '10']), /is canary, 10 % of new instances/);
  assert.match(await cli.ok(['releases', 'evaluate', id]), /candidate {2}0 ended/);
  assert.equal((await cli.run(['releases', 'promote', id])).code, 6);
  assert.match(await cli.ok(['releases', 'pause', id]), /is paused/);
  assert.match(await cli.ok(['releases', 'rollback', id]), /is rolled_back/);
  assert.match(await cli.ok(['releases', 'status', id]), /paused → rolled_back/);
});

test('a key is made, used, listed and revoked; its secret is alone on standard output', async () => {
  trying('keys create', 'keys list', 'keys revoke');
  const secret = (await cli.ok(['keys', 'create', 'reader', '--can', 'auditor'])).trim();
  assert.match(secret, /^sk_[\da-f]{64}$/);
  const env = { ENGINE_API_KEY: secret };
  await cli.ok(['instances', 'list'], { env });
  const refused = await cli.run(['instances', 'cancel', '--all', '--yes'], { env });
  assert.equal(refused.code, 4);
  assert.match(refused.err, /doctor says what it may/);
  const minted = await cli.json<KeyMinted>(['keys', 'create', 'both', '--can', 'worker,starter']);
  assert.deepEqual(minted.capabilities, ['worker', 'starter']);
  assert.match(await cli.ok(['keys', 'list']), /reader +auditor +in force/);
  await cli.ok(['keys', 'revoke', minted.id]);
  trying('tenants list', 'whoami');
  assert.match(await cli.ok(['tenants', 'list', '--all']), new RegExp(tenant.name));
  assert.equal((await cli.json<{ is_root: boolean }>(['whoami'])).is_root, true);
  assert.match(await cli.ok(['whoami'], { env }), /auditor/);
  assert.match(await cli.ok(['keys', 'list']), /both +worker, starter +revoked/);
});

test('exit codes tell what kind of failure it was', async () => {
  const none = '00000000-0000-0000-0000-000000000000';
  const code = async (args: readonly string[], env: Record<string, string> = {}) =>
    (await cli.run(args, { env })).code;
  assert.equal(await code(['instances', 'nonsense']), 2);
  assert.equal(await code(['instances', 'list', '--state', 'nonsense']), 2);
  assert.equal(await code(['instances', 'get', none]), 3);
  assert.equal(await code(['instances', 'list'], { ENGINE_API_KEY: 'wrong' }), 4);
  assert.equal(
    await code(['instances', 'list', '--timeout', '1s'], { ENGINE_URL: 'http://127.0.0.1:9' }),
    5,
  );
  assert.equal(await code(['cron', 'create', 'nonsense', 'hello']), 6);
});

test('what cannot be meant is said before anybody is asked', async () => {
  for (const [args, said] of [
    [['instances', 'get', ''], /It is empty/],
    [['instances', 'cancel', ''], /It is empty/],
    [['sequences', 'diff', 'hello', 'one'], /a version is a whole number, not one/],
    [['instances', 'start', 'hello', '--at', 'soon'], /2h \(from now\), not soon/],
  ] as const) {
    const { code, err } = await cli.run(args);
    assert.equal(code, 2, err);
    assert.match(err, said);
  }
  const env = { ENGINE_URL: 'http://127.0.0.1:2' };
  const { code, err } = await cli.run(['instances', 'list'], { env });
  assert.equal(code, 5);
  assert.match(err, /reached nobody[\s\S]*Is this the right address\?/);
});

test('an instance that is to start in some time waits for it', async () => {
  const id = (await cli.ok(['instances', 'start', 'hello', '--at', '2h'])).trim();
  const { state, next_fire_at } = await cli.json<TaskInstance>(['instances', 'get', id]);
  assert.equal(state, 'scheduled');
  assert.ok(Date.parse(next_fire_at ?? '') > Date.now() + 3_600_000, String(next_fire_at));
});

test('a tenant that was not named is asked for in words', async () => {
  const listed = await cli.run(['instances', 'list'], { env: { ENGINE_TENANT: '' } });
  assert.equal(listed.code, 6);
  assert.match(listed.err, /Give --tenant NAME, set ENGINE_TENANT/);
  const started = await cli.run(['instances', 'start', 'x'], { env: { ENGINE_TENANT: '' } });
  assert.equal(started.code, 2);
});

test('what goes wrong is JSON too when JSON was asked for', async () => {
  const { code, out } = await cli.run([
    'instances',
    'get',
    '00000000-0000-0000-0000-000000000000',
    '--json',
  ]);
  assert.equal(code, 3);
  const { code: error, status } = JSON.parse(out) as { code: string; status: number };
  assert.deepEqual([error, status], ['ENG_NOT_FOUND', 404]);
});

test('a key never goes on the command line, and whoever tries is told where it goes', async () => {
  const { code, err } = await cli.run(['instances', 'list', '--api-key', 'x']);
  assert.equal(code, 2);
  assert.match(err, /ENGINE_API_KEY, give --key-file FILE, or keep it in a profile/);
});

test('every command was tried', () => {
  trying('tenants place', 'tenants move');
  const inOtherFiles = COMMANDS.map(({ name }) => name).filter((name) =>
    /^(profiles|cells) /.test(name),
  );
  trying(...inOtherFiles);
  assert.deepEqual(
    COMMANDS.map(({ name }) => name).filter((name) => !tried.has(name)),
    [],
  );
});
