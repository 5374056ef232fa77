/**
 * Every command against a real server: what it prints for people and for programs, and how it ends.
 *
 * Cost: 25 s, since each of its 150 commands is a process.
 */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { COMMANDS } from '../../cli/commands.js';
import { timeOfDay } from '../../cli/follow.js';
import type {
  BulkJob,
  KeyMinted,
  Release,
  TaskInstance,
  Trigger,
  WorkerEndpoint,
} from '../../client/src/index.js';
import { eventually, step, useSharedApi } from '../helpers/api.js';
import { CLI, type CliOptions, cliWorld } from '../helpers/cli.js';
import { column } from '../helpers/columns.js';
import { runScript } from '../helpers/docs.js';

const api = useSharedApi();
const tenant = api.tenant();
const world = cliWorld(() => ({ url: api.url, tenant: tenant.name }));

/** Commands with a file of their own, and those that were run here: none may be forgotten. */
const tried = new Set(['start', 'dev', 'doctor', 'completion']);
const OTHERS = /^(?:profiles|cells) |^tenants (?:place|move)$/;

function noted(args: readonly string[]): readonly string[] {
  const line = `${args.join(' ')} `;
  for (const { name } of COMMANDS) if (line.startsWith(`${name} `)) tried.add(name);
  return args;
}

const cli = {
  run: (args: readonly string[], options?: CliOptions) => world.run(noted(args), options),
  ok: (args: readonly string[], options?: CliOptions) => world.ok(noted(args), options),
  json: <T>(args: readonly string[]) => world.json<T>(noted(args)),
};

/** The words of a command, and what else stands on its line. */
const words = (text: string, more: readonly string[]) => [...text.split(' '), ...more];
const run = (text: string, ...more: string[]) => cli.run(words(text, more));
const ok = (text: string, ...more: string[]) => cli.ok(words(text, more));
const json = <T>(text: string, ...more: string[]) => cli.json<T>(words(text, more));

/** Ends with this code, and says why. */
async function refused(code: number, said: RegExp, ...args: Parameters<typeof run>): Promise<void> {
  const { code: ended, err } = await run(...args);
  assert.equal(ended, code, err);
  assert.match(err, said);
}

function file(name: string, content: unknown): string {
  const place = path.join(world.home, name);
  writeFileSync(place, typeof content === 'string' ? content : JSON.stringify(content));
  return place;
}

/** Stores a definition from a file of its name; resolves with what is said. */
const apply = (name: string, ...blocks: object[]) =>
  ok('sequences apply', file(`${name}.json`, { name, blocks }));
const start = async (name: string) => (await ok('instances start', name)).trim();

const NOBODY = step('w', 'nobody-does-this');
const greet = (message: string) => step('greet', 'log', { params: { message } });

test('a definition is stored once, and a changed one becomes the next version', async () => {
  assert.match(await apply('hello', greet('one')), /^hello v1: created\n$/);
  assert.match(await apply('hello', greet('one')), /^hello v1: unchanged\n$/);
  const hello = file('hello.json', { name: 'hello', blocks: [greet('two')] });
  assert.match(await ok('sequences apply', hello, '--dry-run'), /^hello v2: new version\n/);
  assert.match(await ok('sequences apply', hello), /^hello v2: new version\n {2}.*greet/);
  assert.deepEqual(column(await json<{ version: number }[]>('sequences list'), 'version'), [2, 1]);
  assert.equal((await json<{ version: number }>('sequences get hello')).version, 2);
  assert.match(await ok('sequences steps hello --since 2h'), /^BLOCK +RUNS .*\ngreet +\d+ /);
});

test('a number that is taken by another definition is refused, and says what is different', async () => {
  const place = file('pinned.json', { name: 'pinned', version: 1, blocks: [greet('one')] });
  await ok('sequences apply', place);
  file('pinned.json', { name: 'pinned', version: 1, blocks: [greet('two')] });
  await refused(6, /version 1 of pinned already exists.*greet/, 'sequences apply', place);
});

test('definitions may be YAML, lists of them, folders, or come by the standard input', async () => {
  const yaml = 'name: yaml\nblocks:\n  - { type: step, id: a, handler: noop }\n';
  assert.match(await ok('sequences apply', file('one.yaml', yaml)), /^yaml v1: created/);
  const list = ['left', 'right'].map((name) => ({ name, blocks: [greet(name)] }));
  assert.match(await ok('sequences apply', file('two.json', list)), /left v1.*\nright v1/);
  const input = JSON.stringify({ name: 'piped', blocks: [greet('x')] });
  assert.match(await cli.ok(['sequences', 'apply', '-'], { input }), /^piped v1: created/);
});

test('a version on hold is passed over by its name until the hold is lifted', async () => {
  await apply('held', greet('one'));
  const next = file('held.json', { name: 'held', blocks: [greet('two')] });
  assert.match(await ok('sequences apply', next, '--hold'), /^held v2: new version, on hold\n/);
  assert.equal(await ok('sequences apply', next), 'held v2: unchanged, on hold\n');
  assert.match(
    await ok('sequences list --name held'),
    /^held +2 +on hold .*\nheld +1 +production /m,
  );
  assert.equal((await json<{ version: number }>('sequences get held')).version, 1);
  await refused(2, /a version must be given as order@2/, 'sequences unhold held');
  await refused(3, /version 9 of held not found in default/, 'sequences unhold held@9');
  assert.match(await ok('sequences unhold held@2'), /^held v2 is no longer on hold/);
  assert.equal((await json<{ version: number }>('sequences get held')).version, 2);
});

test('a release is made of names with versions, and what was promoted goes back by a deprecation', async () => {
  for (const text of ['one', 'two']) await apply('back', greet(text));
  await refused(2, /needs two versions, such as order@1 order@2/, 'releases create back@1');
  const release = (await ok('releases create back@1 back@2')).trim();
  await ok('releases validate', release, '--skip');
  await ok('releases canary', release, '100');
  await ok('releases promote', release);
  await refused(6, /deprecate version 2/, 'releases rollback', release);
  assert.match(await ok('sequences deprecate back@2'), /^back v2 was deprecated/);
  assert.match(await ok('instances get', await start('back')), /^sequence_id +\S+/m);
  assert.match(await ok('instances list --sequence back'), /back v1/);
});

test('validation tells every mistake with its place, and ends with 1', async () => {
  const bad = file('bad.json', {
    name: 'bad',
    blocks: [{ type: 'stp', id: 'a' }, step('b', 'log', { params: {}, retri: {} })],
  });
  await refused(1, /blocks\[0\]\.type.*did you mean step\?/, 'sequences validate', bad);
  const good = file('good.json', { name: 'good', blocks: [greet('hi')] });
  assert.equal(await ok('sequences validate', good), 'good: valid\n');
});

test('a definition runs dry on the data of an instance before it is published', async () => {
  await apply('paid', NOBODY);
  const started = await ok('instances start paid', '--data', '{"amount": 7}');
  const on = ['--on', started.trim()];
  const blocks = [
    step('sum', 'transform', { params: { all: '{{ data.amount }}' } }),
    step('charge', 'bank'),
  ];
  const next = file('paid2.json', { name: 'paid', blocks });
  const told = await ok('sequences dry-run', next, ...on);
  assert.match(told, /^paid: completed\n {2}completed +sum step.*\n {2}completed +charge step/);
  const answers = await json<{ outputs: { sum: object } }[]>('sequences dry-run', next, ...on);
  assert.deepEqual(column(column(answers, 'outputs'), 'sum'), [{ all: 7 }]);
  assert.match(await ok('sequences list --name paid'), /^paid +1 /m);
  const failing = file('paid3.json', { name: 'paid', blocks: [step('no', 'fail')] });
  const { code, out } = await run('sequences dry-run', failing, ...on);
  assert.deepEqual([code, out.split('\n', 1)], [1, ['paid: failed']]);
  const wrong = file('paid4.json', { name: 'paid', blocks: [{ type: 'stp', id: 'x' }] });
  await refused(1, /did you mean step\?/, 'sequences dry-run', wrong, ...on);
  await refused(2, /--on is required/, 'sequences dry-run', next);
});

test('two versions are compared by what changes for a new instance', async () => {
  const { code, out } = await run('sequences diff hello 1 2');
  assert.equal(code, 1);
  assert.match(out, /behavioral +step greet: params change: message/);
  assert.match(out, /^blocks\.greet\.params\.message\n {2}- one\n {2}\+ two$/m);
  const { texts } = JSON.parse((await run('sequences diff hello 1 2 --json')).out);
  assert.deepEqual(texts, [{ path: 'blocks.greet.params.message', before: 'one', after: 'two' }]);
  assert.equal((await run('sequences diff hello 2 2')).code, 0);
  assert.equal((await run('sequences diff hello 9')).code, 3);
});

test('a namespace comes from an option or the environment, and a name of another one is found', async () => {
  const place = file('kept.json', { name: 'kept', blocks: [NOBODY] });
  await ok('sequences apply', place, '--namespace', 'shop');
  const start = ['instances', 'start', 'kept'];
  const { code, err } = await cli.run(start);
  assert.equal(code, 3);
  assert.match(err, /Not in namespace default; shop has one: use --namespace shop\./);
  await refused(3, /shop has one/, 'sequences get kept');
  await refused(3, /shop has one/, 'sequences deprecate kept@1');
  const env = { ENGINE_NAMESPACE: 'shop' };
  const id = (await cli.ok(start, { env })).trim();
  assert.match(await cli.ok(['instances', 'list'], { env }), new RegExp(id));
  assert.equal(
    await cli.ok(['instances', 'list', '--json', '--namespace', 'none'], { env }),
    '[]\n',
  );
  // It restricts a selection, and is none.
  const all = await cli.run(['instances', 'cancel', '--yes'], { env });
  assert.match(all.err, /no instances are selected/);
  assert.match(await ok('instances cancel --namespace shop --yes'), /^1 instance cancelled/);
});

test('a credential is stored from a file or standard input, and its secret is never shown', async () => {
  const secret = 'sk_live_never_shown';
  const input = `${secret}\n`;
  const create = ['credentials', 'create', 'bank', '--value-file', '-', '--expires-at', '30d'];
  assert.equal(await cli.ok(create, { input }), 'bank\n');
  await refused(2, /--value-file is required/, 'credentials create other');
  const listed = await ok('credentials list');
  assert.match(listed, /^bank +api_key +enabled /m);
  assert.ok(!listed.includes(secret));
  await ok('credentials update bank --disable --value-file', file('value', 'another'));
  assert.match(await ok('credentials list'), /^bank +api_key +disabled /m);
  await ok('credentials delete bank');
  assert.equal((await json<unknown[]>('credentials list')).length, 0);
});

test('an event is sent, listed and shown, and says what it does', async () => {
  const sent = await run('events send paid --key A-17 --payload', '{"amount": 42}', '--ttl', '60');
  assert.equal(sent.code, 0, sent.err);
  assert.match(sent.err, /Sent: ends 0 waits, fires 0 triggers, cancels 0 instances\./);
  const id = sent.out.trim();
  assert.match(
    await ok('events list --name paid --status pending'),
    new RegExp(`^${id} +paid +A-17`, 'm'),
  );
  const shown = await json<{ payload: unknown; cancelled: unknown }>('events get', id);
  assert.deepEqual([shown.payload, shown.cancelled], [{ amount: 42 }, []]);
});

test('what steps logged is listed, with its filters', async () => {
  const level = 'warn';
  const blocks = [step('said', 'log', { params: { message: 'paper is out', level } })];
  const id = await tenant.runUntil('completed', blocks);
  const listed = await ok('logs --text PAPER --level warn,error');
  assert.match(listed, new RegExp(`warn +\\S+ +said +paper is out +${id}`));
  assert.deepEqual(await json('logs --level debug'), []);
});

test('rate limits are set, listed, shown by key and deleted, patterns too', async () => {
  assert.equal(
    await ok('rate-limits put', 'mail:*', '--max', '5', '--window', '60'),
    'mail:*: 5 in 60 s.\n',
  );
  await refused(2, /--window is required/, 'rate-limits put mail --max 5');
  assert.match(await ok('rate-limits list'), /^mail:\* +5 +60 s /m);
  const shown = await json<{ pattern: string }>('rate-limits get', 'mail:a');
  assert.equal(shown.pattern, 'mail:*');
  assert.equal(await ok('rate-limits delete', 'mail:*'), 'mail:* deleted.\n');
  await refused(3, /not found/, 'rate-limits get mail:a');
});

test('an instance is started by name, and its id is all that standard output holds', async () => {
  const out = await ok('instances start hello --data {"name":"Ada"} --key k1');
  assert.match(out, /^[\da-f-]{36}\n$/);
  const id = out.trim();
  assert.equal((await run('instances start hello --key k1')).out, out);
  assert.deepEqual((await json<TaskInstance>('instances get', id)).context.data, { name: 'Ada' });
  assert.match(await ok('instances get', id), /^id {2,}[\da-f-]{36}\n/);
  assert.match(await ok('instances list --sequence hello'), /hello v2/);
  const seen = (await json<TaskInstance[]>('instances list --sequence hello')).map((one) => one.id);
  assert.deepEqual(seen, [id]);
});

test('waiting for an instance ends with 0 when it completes, and with 1 when it fails', async () => {
  await apply('fails', step('no', 'fail', { params: { message: 'too bad' } }));
  assert.match(await ok('instances start hello --wait'), /completed/);
  const { code, out } = await run('instances start fails --wait');
  assert.equal(code, 1);
  assert.match(out, /failed[\s\S]*no: .*too bad/);
  await apply('waits', NOBODY);
  assert.equal((await run('instances start waits --wait --timeout 500ms')).code, 8);
});

test('instances watch shows the times of the events, in order', async () => {
  const id = (await ok('instances start hello --key k1')).trim();
  const { updated_at } = await tenant.until(id, 'completed');
  const [greeted] = await tenant.outputs(id);
  const times = [greeted?.created_at, updated_at].map((at = '') => timeOfDay(new Date(at)));
  const env = { TZ: Intl.DateTimeFormat().resolvedOptions().timeZone };
  const seen = await cli.ok(['instances', 'watch', id], { env });
  assert.match(seen, new RegExp(`^${times[0]} greet .*\\n${times[1]} completed\\n$`));
});

test('what an instance does is shown as a tree and as an explanation', async () => {
  const id = await start('waits');
  assert.match(await ok('instances tree', id), /^waiting +w step/m);
  const told = await ok('instances explain', id);
  assert.match(told, /^waiting since [\s\S]*no worker polls for the handler nobody-does-this/);
});

test('instances are paused, resumed, sent signals, cancelled and retried by their ids', async () => {
  const id = await start('waits');
  assert.equal(await ok('instances pause', id), `${id} paused\n`);
  await tenant.until(id, 'paused');
  await ok('instances resume', id);
  await ok('instances signal approve', id, '--payload', '{"by":"me"}');
  const sent = await tenant.get<{ signal_type: string }[]>(
    `/instances/${id}/signals?signal_type=custom:approve`,
  );
  assert.equal(sent.body.length, 1);
  assert.match(await ok('instances signal update_context', id, '--wait'), /^it took effect\n/);
  const none = '00000000-0000-0000-0000-000000000000';
  const { code, out, err } = await run('instances cancel', id, none);
  assert.equal(code, 3);
  assert.equal(out, `${id} cancelled\n`);
  assert.match(err, new RegExp(none));
  await tenant.until(id, 'cancelled');
  const failed = (await json<{ id: string }>('instances start fails')).id;
  await tenant.until(failed, 'failed');
  assert.equal(await ok('instances retry', failed), `${failed} retried\n`);
});

test('a retry that repeats outside effects names them, and needs --yes where no terminal can confirm', async () => {
  const steps = [
    { id: 'pay', action: step('charge', 'cli-charge'), compensation: step('back', 'noop') },
    { id: 'send', action: step('ship', 'fail') },
  ];
  await apply('trip', step('first', 'noop'), { type: 'saga', id: 'trip', steps });
  const id = await start('trip');
  await tenant.complete(await tenant.task('cli-charge'));
  await tenant.until(id, 'failed');
  const words =
    /Saga trip runs again as a whole: .*\(trip\[0\]\/charge\) acts outside a second time/;
  assert.match(await ok('instances explain', id), words);
  await refused(2, words, 'instances retry', id);
  await refused(2, /Stays: first\n.*would repeat external effects/, 'dlq retry', id);
  const count = /^1 instance would be retried; 1 of them repeats external effects\.$/m;
  assert.match(await ok('dlq retry --sequence trip --dry-run'), count);
  await ok('instances pause', id);
  await refused(2, words, 'instances resume', id);
  assert.equal((await tenant.instance(id)).state, 'paused');
  assert.equal(await ok('instances resume --yes', id), `${id} resumed\n`);
  await tenant.complete(await tenant.task('cli-charge'));
  await tenant.until(id, 'failed');
  assert.equal(await ok('instances retry --yes', id), `${id} retried\n`);
});

test('a child whose parent has gone on without it is retried with --yes, and of many with --orphans', async () => {
  await apply('lost', step('ship', 'fail'));
  const buy = { type: 'sub_sequence', id: 'buy', sequence_name: 'lost' };
  await apply('buys', { type: 'try_catch', id: 'guard', try_block: [buy], catch_block: [] });
  const parent = await start('buys');
  await tenant.until(parent, 'completed');
  const [child] = await json<{ id: string }[]>('dlq list --sequence lost');
  const words = new RegExp(
    `Its parent ${parent} is completed without it[^]*would run without its parent`,
  );
  await refused(2, words, 'dlq retry', child!.id);
  assert.match(await ok('dlq retry --sequence lost --dry-run'), /^0 instances would be retried\./);
  const all = /^1 instance would be retried; 1 of them repeats external effects\./;
  assert.match(await ok('dlq retry --sequence lost --orphans --dry-run'), all);
});

test('bulk changes need --yes where no terminal can confirm, and show the count first', async () => {
  await apply('many', NOBODY);
  for (let i = 0; i < 3; i++) await ok('instances start many');
  const cancel = ['instances', 'cancel', '--sequence', 'many'];
  const no = await cli.run(cancel);
  assert.equal(no.code, 2);
  assert.match(
    no.err,
    /3 instances would be cancelled, and there is no terminal to ask for confirmation/,
  );
  assert.equal(await cli.ok([...cancel, '--dry-run']), '3 instances would be cancelled.\n');
  assert.equal(await cli.ok([...cancel, '--yes']), '3 instances cancelled.\n');
  assert.equal(await cli.ok([...cancel, '--yes']), '0 instances cancelled.\n');
  const [job] = await json<BulkJob[]>('jobs list');
  assert.ok(job);
  assert.equal((await json<BulkJob>('jobs get', job.id)).applied, 3);
  assert.equal((await run('jobs cancel', job.id)).code, 6);
  const actions = await ok('actions list --kind bulk_job --by root --limit 1');
  assert.match(
    actions,
    /^WHEN +BY +ACTION +TARGET\n.* root +cancelled many instances by bulk job /,
  );
});

test('a change that names nothing is refused, whatever it would do', async () => {
  await refused(2, /no instances are selected/, 'instances cancel --yes');
  assert.equal((await run('dlq drain x --sequence y --yes')).code, 2);
  assert.equal((await run('instances cancel x --dry-run')).code, 2);
});

test('failed instances are listed with their reason, retried and given up', async () => {
  const id = await start('fails');
  await tenant.until(id, 'failed');
  const live = await start('waits');
  assert.equal((await run('dlq drain', live)).code, 6);
  await tenant.until(live, 'waiting');
  assert.match(await ok('dlq list --sequence fails'), /fails v1 +no +too bad/);
  assert.match(await ok('failures list --sequence fails --since 1h'), /\bnew\b/);
  assert.match(await ok('failures list --sequence fails'), /fails v1 +no .*too bad/);
  assert.match(await ok('dlq retry --sequence fails --yes'), /instances? retried/);
  await tenant.until(id, 'failed');
  await eventually(async () => {
    assert.match(await ok('dlq drain --sequence fails --yes'), /cancelled/);
    assert.deepEqual(await json('dlq list --sequence fails'), []);
  });
});

test('an instance goes over to another version, or says why not', async () => {
  await apply('moves', NOBODY);
  const id = await start('moves');
  await tenant.until(id, 'waiting');
  await apply('moves', NOBODY, greet('then'));
  const migrate = ['instances', 'migrate', id, '--to-version', '2'];
  assert.match(await cli.ok([...migrate, '--dry-run']), /not migrated: version 1 → 2, automatic/);
  assert.match(await cli.ok(migrate), / migrated: version 1 → 2, automatic/);
});

test('the instances of a version go over to another one, once it was said how many can', async () => {
  const gate = (prompt: string) =>
    step('gate', 'noop', { wait_for_input: { prompt, choices: [{ label: 'Yes', value: 'yes' }] } });
  await apply('gates', gate('Go?'));
  const ids = await Promise.all([1, 2, 3].map(() => ok('instances start gates')));
  for (const id of ids) await tenant.until(id.trim(), 'waiting');
  await apply('gates', gate('Shall it go?'));
  const move = ['sequences', 'migrate', 'gates', '--from', '1', '--state', 'waiting'];
  const shown = await cli.ok([...move, '--dry-run']);
  assert.match(shown, /^3 instances would be migrated from version 1 to 2\.\n$/);
  const no = await cli.run(move);
  assert.equal(no.code, 2);
  assert.match(no.err, /3 instances would be migrated .* there is no terminal to ask/);
  const total = await cli.json<{ migrated: number; migrations: unknown[] }>([...move, '--yes']);
  assert.deepEqual([total.migrated, total.migrations.length], [3, 3]);
  assert.match(await cli.ok([...move, '--yes']), /^0 instances would be migrated/);
  await ok('instances cancel --sequence gates --yes');
  assert.equal((await run('sequences migrate gates --from 9')).code, 3);
  assert.equal((await run('sequences migrate gates')).code, 2);
});

test('instances whose migration has to be approved go over when that is said', async () => {
  await apply('risky', NOBODY);
  const id = await start('risky');
  await tenant.until(id, 'waiting');
  await apply('risky', NOBODY, step('more', 'nobody-does-this-either'));
  const migrate = 'sequences migrate risky --from 1 --yes';
  assert.match(await ok(migrate), /^0 instances would be .*; 1 need approval \(use --approved\)\./);
  assert.match(
    await ok(`${migrate} --approved --dry-run`),
    /^1 instance would be .* from version 1 to 2\.$/m,
  );
  assert.match(await ok(`${migrate} --approved`), /^1 instance migrated from version 1 to 2\.$/m);
  assert.match(await ok('instances list --sequence risky'), /risky v2/);
});

test('a definition that is only written in another way is a new version, and said to be that', async () => {
  await apply('same', greet('one'));
  const shown = await apply('same', { ...greet('one'), cancellable: true });
  assert.match(shown, /^same v2: new version\n {2}written differently/);
});

test('what people are asked is listed and answered', async () => {
  const choices = ['yes', 'no'].map((value) => ({ label: value.toUpperCase(), value }));
  await apply('asks', step('ok', 'noop', { wait_for_input: { prompt: 'Ship it?', choices } }));
  const id = await start('asks');
  const approval = await eventually(async () => {
    const [found] =
      await json<{ id: string; prompt: string; instance_id: string }[]>('approvals list');
    assert.ok(found);
    return found;
  });
  assert.equal(approval.prompt, 'Ship it?');
  assert.match(await ok('approvals list'), /Ship it\? +yes, no +any/);
  assert.doesNotMatch(await ok('approvals list --group finance'), /Ship it/);
  assert.match(await ok('approvals get', approval.id), /^data +\{/m);
  await refused(3, /no open approval/, 'approvals get', approval.instance_id);
  assert.match(await ok('approvals answer', approval.id, 'yes'), /^ok was answered with yes\.\n$/);
  await tenant.until(id, 'completed');
});

test('tasks and workers are listed', async () => {
  await ok('instances start waits');
  await eventually(async () =>
    assert.match(await ok('tasks list --state pending'), /pending +nobody-does-this/),
  );
  const [queue] = (
    await json<{ handler: string; waiting: number; workers: number }[]>('queues list')
  ).filter(({ handler }) => handler === 'nobody-does-this');
  assert.ok((queue?.waiting ?? 0) > 0 && queue?.workers === 0);
  assert.match(await ok('queues series nobody-does-this'), /^AT +ARRIVED +CLAIMED/);
  await tenant.poll('something-else', { worker_id: 'worker-of-the-cli' });
  await eventually(async () => assert.match(await ok('workers list'), /worker-of-the-cli +yes/));
});

test('a worker endpoint is set, shown, changed and deleted', async () => {
  const secret = file('secret', 'a secret of the endpoint\n');
  const url = 'https://tasks.example/in';
  const set = ['charging', url, '--handler', 'charge', '--handler', 'refund'];
  const made = await run('endpoints set', ...set, '--secret-file', secret, '--disabled');
  assert.equal(made.out, 'charging\n');
  assert.match(made.err, /^It gets the tasks of charge, refund\./);
  assert.match(await ok('endpoints list'), /charging +charge, refund +https:.* +disabled +0/);
  await ok('endpoints set', ...set, '--concurrency', '3', '--disabled');
  assert.match(await ok('endpoints get', 'charging'), /concurrency +3/);
  await refused(2, /--handler is required/, 'endpoints set', 'other', url);
  await refused(6, /secret is required/, 'endpoints set', 'other', url, '--handler', 'charge');
  assert.match(await ok('endpoints delete', 'charging'), /was deleted/);
  assert.equal((await run('endpoints get', 'charging')).code, 3);
});

test('an instance is found by the start of a value of its metadata, a sequence by its name', async () => {
  const id = (await ok('instances start', 'hello', '--metadata', 'order=FIND-1')).trim();
  assert.match(await ok('search', 'find-'), new RegExp(`instance +${id} .*value: find-1`));
  assert.match(await ok('search', 'ELL'), /sequence +[\da-f-]{36} +- +hello \d .*name: hello/);
});

test('a schedule is made, shown, changed, fired and deleted', async () => {
  const made = await run('cron create', '0 9 * * mon-fri', 'hello', '--timezone', 'Europe/Berlin');
  const id = made.out.trim();
  assert.match(made.out, /^[\da-f-]{36}\n$/);
  assert.match(made.err, /^Next run: 2/);
  assert.match(await ok('cron list'), /0 9 \* \* mon-fri +hello +in /);
  assert.match(await ok('cron update', id, '--disable'), /: disabled\.\n$/);
  assert.match(await ok('cron get', id), /enabled +false/);
  const previewed = ['30 2 * * *', '--timezone', 'Europe/Berlin', '--from', '2026-03-28T12:00:00Z'];
  assert.equal(
    await ok('cron preview', ...previewed, '--count', '1'),
    '2026-03-29T03:00:00.000+02:00  2026-03-29T01:00:00.000Z\n',
  );
  assert.equal((await ok('cron next', id, '--count', '3')).trim().split('\n').length, 3);
  assert.match(await ok('cron run', id), /^[\da-f-]{36}\n$/);
  assert.match(await ok('cron delete', id), /was deleted/);
  assert.equal((await run('cron get', id)).code, 3);
});

test('an instance that is yet to start is listed, shown, started and dropped', async () => {
  const blocks = [step('a', 'noop')];
  for (const name of ['collects', 'drops']) {
    const definition = { name, blocks, debounce: { wait_ms: 600_000 } };
    await ok('sequences apply', file(`${name}.json`, definition));
  }
  const [first, second] = [await start('collects'), await start('drops')];
  assert.match(
    await ok('pending-starts list', '--sequence', 'drops'),
    /drops +debounce +- +1 +in /,
  );
  assert.match(await ok('pending-starts get', first), /kind +debounce/);
  assert.equal((await ok('pending-starts start', first)).trim(), first);
  assert.match(await ok('pending-starts drop', second), /was dropped/);
  assert.equal((await run('pending-starts get', second)).code, 3);
});

test('the examples of the manual do what they say', async () => {
  await apply('ship-order', greet('shipped'));
  file('stripe.secret', 'whsec_examples\n');
  const [, script = ''] =
    /## Examples\n\n```sh by-hand\n(.*?)```/s.exec(readFileSync('docs/cli.md', 'utf8')) ?? [];
  const program = `durable-workflow-engine() { "${process.execPath}" "${CLI}" "$@"; }\n`;
  const place = { folder: world.home, env: { ...world.env, TASK_SECRET: 'whsec_c2VjcmV0' } };
  const { code, stdout, stderr } = await runScript(program + script, place);
  assert.equal(code, 0, stdout + stderr);
  const [endpoint] = await json<WorkerEndpoint[]>('endpoints list');
  assert.deepEqual([endpoint?.concurrency, endpoint?.timeout_ms], [20, 65_000]);
  assert.match(await ok('instances list --sequence ship-order'), /ship-order v1/);
  assert.match(await ok('rate-limits list'), /mail:small-shop +5 +60 s/);
  await ok('endpoints delete', 'billing');
  for (const slug of ['stripe-in', 'paid-in']) await ok('triggers delete', slug);
  for (const key of ['mail:*', 'mail:small-shop']) await ok('rate-limits delete', key);
});

test('an unknown word is followed by what was meant, if something is like it, else by where the words are', async () => {
  await refused(2, /unknown command 'lsit'; did you mean list\?/, 'instances lsit');
  await refused(2, /unknown command 'instanses'; did you mean instances\?/, 'instanses');
  await refused(2, /'create'\n.* instances --help lists the commands\.$/m, 'instances create');
  await refused(
    2,
    /unknown option '--sequense'; did you mean --sequence\?/,
    'instances list --sequense x',
  );
  await refused(
    2,
    /unknown option '--tenannt=a'; did you mean --tenant\?/,
    'instances list --tenannt=a',
  );
  await refused(
    2,
    /'--xyz'\n.* instances list --help lists the options\.$/m,
    'instances list --xyz',
  );
  await refused(2, /unknown option '--key'\nKeys are not accepted/, 'instances list --key k');
});

test('a validation shows each run that diverges on a line, and all of them as JSON', async () => {
  await apply('routed', step('a', 'transform', { params: { n: 1 } }));
  const id = await start('routed');
  await tenant.until(id, 'completed');
  await apply('routed', step('a', 'transform', { params: { n: 2 } }), step('b', 'noop'));
  const release = async () => (await ok('releases create routed@1 routed@2')).trim();
  const { code, out } = await run('releases validate', await release());
  assert.equal(code, 1);
  assert.match(
    out,
    /^The release is \w+: of 1 replayed runs 0 match, 1 diverge, 0 are inconclusive\.\nINSTANCE /,
  );
  assert.match(out, new RegExp(`^${id} +completed +b`, 'm'));
  const all = await run('releases validate', await release(), '--json');
  assert.equal(JSON.parse(all.out).divergences[0].instance_id, id);
});

test('a release is drafted, validated, led in, judged and ended', async () => {
  const versions = await json<{ id: string; name: string; version: number }[]>('sequences list');
  const idOf = (number: number) =>
    versions.find(({ name, version }) => name === 'hello' && version === number)?.id ?? '';
  const create = ['releases', 'create', '--baseline', idOf(1), '--candidate', idOf(2)];
  const id = (await cli.ok([...create, '--gate', 'error_rate:0.05:20'])).trim();
  assert.match(await ok('releases list'), /draft +hello +1 → 2/);
  const listed = (...more: string[]) => json<Release[]>('releases list', ...more);
  assert.equal((await listed('--state', 'draft', '--sequence', 'hello')).length, 1);
  assert.deepEqual(await listed('--state', 'canary'), []);
  assert.deepEqual(await listed('--sequence', 'other'), []);
  assert.equal((await json<Release>('releases status', id)).state, 'draft');
  await ok('releases validate', id, '--skip');
  assert.match(await ok('releases canary', id, '10'), /is canary, 10 % of new instances/);
  assert.match(await ok('releases evaluate', id), /candidate {2}0 ended/);
  assert.equal((await run('releases promote', id)).code, 6);
  assert.match(await ok('releases pause', id), /is paused/);
  assert.match(await ok('releases rollback', id), /is rolled_back/);
  assert.match(await ok('releases status', id), /paused → rolled_back/);
});

test('a trigger is made, changed, fired and deleted; its id is alone on standard output', async () => {
  await apply('hello', greet('hello'));
  assert.equal(await ok('triggers create cli-starts hello --disabled'), 'cli-starts\n');
  assert.equal((await run('triggers fire cli-starts')).code, 6);
  assert.match(await ok('triggers update cli-starts --enable'), /is enabled/);
  const id = (await ok('triggers fire cli-starts --data', '{"name": "Ada"}')).trim();
  assert.equal((await tenant.instance(id)).metadata._trigger, 'cli-starts');
  const publish = ['--publish', '{"event": "stripe.{{ body.type }}"}'];
  const [secret, next] = [file('secret', 'whsec_one\n'), file('next', 'whsec_two\n')];
  const verify = ['--scheme', 'stripe', '--secret-file', secret];
  await ok('triggers create cli-publishes', ...publish, ...verify);
  assert.match(await ok('triggers list'), /cli-publishes +publish stripe\.\S+ .* +stripe +enabled/);
  await ok('triggers update cli-publishes', ...verify, '--secret-file', next);
  const { verify: shown } = await json<Trigger>('triggers get cli-publishes');
  assert.deepEqual(shown, { scheme: 'stripe', secret: '[REDACTED]' });
  const event = (await ok('triggers fire cli-publishes --data', '{"type": "paid"}')).trim();
  assert.equal(
    (await tenant.get<{ event_name: string }>(`/events/${event}`)).body.event_name,
    'stripe.paid',
  );
  await ok('triggers update cli-publishes --sequence hello');
  assert.equal((await json<Trigger>('triggers get cli-publishes')).sequence_name, 'hello');
  await ok('triggers create cli-event hello --event-name paid --correlation-key A-17');
  const { config } = await json<Trigger>('triggers get cli-event');
  assert.deepEqual(config, { event_name: 'paid', correlation_key: 'A-17' });
  await refused(2, /--secret-file is required/, 'triggers create cli-none hello --scheme github');
  await refused(2, /--scheme is required/, 'triggers create cli-none hello --header x');
  for (const slug of ['cli-starts', 'cli-publishes', 'cli-event'])
    await ok('triggers delete', slug);
  assert.equal((await run('triggers get cli-starts')).code, 3);
});

test('a webhook subscription is made, changed, read and deleted', async () => {
  const made = await run('webhooks create http://127.0.0.1:9/in --event instance.failed');
  const id = made.out.trim();
  assert.match(id, /^[\da-f-]{36}$/);
  assert.match(made.err, /whsec_[\da-f]{64}/);
  assert.match(await ok('webhooks list'), /http:\/\/127\.0\.0\.1:9\/in +instance\.failed/);
  await ok('webhooks update', id, '--event', 'instance.completed,instance.failed');
  const { events } = await json<{ events: string[] }>('webhooks get', id);
  assert.deepEqual(events, ['instance.completed', 'instance.failed']);
  assert.deepEqual(await json('webhooks deliveries', id), []);
  await ok('webhooks delete', id);
  assert.equal((await run('webhooks get', id)).code, 3);
});

test('a key is made, used, listed and revoked; its secret is alone on standard output', async () => {
  const secret = (await ok('keys create reader --can auditor')).trim();
  assert.match(secret, /^sk_[\da-f]{64}$/);
  const env = { ENGINE_API_KEY: secret };
  await cli.ok(['instances', 'list'], { env });
  const no = await cli.run(['instances', 'cancel', '--all', '--yes'], { env });
  assert.equal(no.code, 4);
  assert.match(no.err, /doctor shows its rights/);
  const minted = await json<KeyMinted>('keys create both --can worker,starter');
  const approver = await json<KeyMinted>(
    'keys create desk --can approver --group finance --group legal',
  );
  assert.deepEqual(approver.groups, ['finance', 'legal']);
  assert.deepEqual(minted.capabilities, ['worker', 'starter']);
  assert.match(await ok('keys list'), /reader +auditor +- +active/);
  await ok('keys revoke', minted.id);
  assert.match(await ok('tenants list --all'), new RegExp(tenant.name));
  assert.equal((await json<{ is_root: boolean }>('whoami')).is_root, true);
  assert.match(await cli.ok(['whoami'], { env }), /auditor/);
  assert.match(await ok('keys list'), /both +worker, starter +- +revoked/);
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
    [['instances', 'get', ''], /It must not be empty/],
    [['instances', 'cancel', ''], /It must not be empty/],
    [['sequences', 'diff', 'hello', 'one'], /the version must be a whole number, not one/],
    [['instances', 'start', 'hello', '--at', 'soon'], /2h \(from now\), not soon/],
  ] as const) {
    const { code, err } = await cli.run(args);
    assert.equal(code, 2, err);
    assert.match(err, said);
  }
  const env = { ENGINE_URL: 'http://127.0.0.1:2' };
  const { code, err } = await cli.run(['instances', 'list'], { env });
  assert.equal(code, 5);
  assert.match(err, /could not connect[\s\S]*Check the address/);
});

test('an instance that is to start in some time waits for it', async () => {
  const id = (await ok('instances start hello --at 2h')).trim();
  const { state, next_fire_at } = await json<TaskInstance>('instances get', id);
  assert.equal(state, 'scheduled');
  assert.ok(Date.parse(next_fire_at ?? '') > Date.now() + 3_600_000, String(next_fire_at));
});

test('a tenant that was not named is asked for, and one that cannot be sent refused, in words', async () => {
  const listed = await cli.run(['instances', 'list'], { env: { ENGINE_TENANT: '' } });
  assert.equal(listed.code, 6);
  assert.match(listed.err, /Use --tenant NAME, set ENGINE_TENANT/);
  const started = await cli.run(['instances', 'start', 'x'], { env: { ENGINE_TENANT: '' } });
  assert.equal(started.code, 2);
  const odd = await cli.run(['instances', 'list'], { env: { ENGINE_TENANT: '漢字' } });
  assert.equal(odd.code, 2);
  assert.match(odd.err, /^error: the tenant "漢字" cannot be sent: .*\n$/);
});

test('what goes wrong is JSON too when JSON was asked for', async () => {
  const { code, out } = await run('instances get 00000000-0000-0000-0000-000000000000 --json');
  assert.equal(code, 3);
  const { code: error, status } = JSON.parse(out) as { code: string; status: number };
  assert.deepEqual([error, status], ['ENG_NOT_FOUND', 404]);
});

test('a key never goes on the command line, and whoever tries is told where it goes', async () => {
  await refused(2, /use --key-file FILE, or save it in a profile/, 'instances list --api-key x');
});

test('every command was tried', () => {
  const names = COMMANDS.map(({ name }) => name);
  const seen = names.filter((name) => !tried.has(name) && !OTHERS.test(name));
  assert.deepEqual(seen, []);
});
