/**
 * The files of the folder deploy name what there is: variables, ports, probes, commands, files and one another. They are
 * read as text; HAProxy and Kustomize check what is theirs where they are installed.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { COMMANDS, GLOBAL_OPTIONS } from '../../cli/commands.js';
import { ROUTES } from '../../schema/routes.js';
import { LIMITS } from '../../src/base/limits.js';
import { readConfig, unknownNames } from '../../src/server/config.js';
import { hasProgram, page, ROOT } from '../helpers/docs.js';

const DEPLOY = path.join(ROOT, 'deploy');
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');

const dockerfile = readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8');
const PORT = Number(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1]);
const PROXY_PORT = 8090;
const CELLS = ['east', 'west'];
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/local/sbin'];

const SECRETS = {
  DATABASE_URL: 'postgres://engine:secret@database:5432/engine',
  ENGINE_API_KEY: 'sk_secret',
  ENGINE_ENCRYPTION_KEY: 'ab'.repeat(32),
  ENGINE_CLUSTER_URL: 'postgres://directory:secret@database:5432/cluster',
};

/** What the product makes of the environment of an engine. @throws AssertionError for a name that it does not know */
function configOf(env: Readonly<Record<string, string>>, flags: readonly string[] = []) {
  assert.deepEqual(unknownNames(env), []);
  const config = readConfig(env, flags);
  assert.deepEqual([config.host, config.port], ['0.0.0.0', PORT]);
  return config;
}

/** @throws AssertionError unless the command line has the command with these options */
function checkCommand(words: readonly string[]): void {
  const named = words.filter((word) => !word.startsWith('-'));
  const command = COMMANDS.find(({ name }) => named.join(' ').startsWith(name));
  assert.ok(command, `no command ${named.join(' ')}`);
  const flags = [...(command.options ?? []), ...GLOBAL_OPTIONS].map(({ flags }) => flags);
  const known = new Set(flags.flatMap((text) => text.match(/--[\w-]+/g) ?? []));
  for (const word of words.filter((text) => text.startsWith('--'))) {
    assert.ok(known.has(word.split('=')[0] ?? ''), `${command.name} has no ${word}`);
  }
}

/** Whatever a file of YAML holds: a member that is missing fails its test. */
type Yaml = ReturnType<typeof JSON.parse>;

const objectsOf = (text: string): Yaml[] =>
  parseAllDocuments(text, { merge: true }).map((document) => document.toJS());

test('every file that the program opens is in the image and in the package', () => {
  const sources = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(path.join(ROOT, 'src', name), 'utf8'));
  const opened = sources.flatMap((source) =>
    [...source.matchAll(/packageFile\('([^']+)'\)/g)].map(([, place = '']) => place),
  );
  assert.ok(opened.includes('src/cluster/schema.sql') && opened.length >= 4, opened.join());
  const packed = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).files;
  const copied = [...dockerfile.matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S*)$/gm)];
  for (const place of opened) {
    assert.ok(
      copied.some(([, from, to]) => from === place && place.startsWith(to ?? '')),
      place,
    );
    // That one is always in it.
    if (place !== 'package.json') assert.ok(packed.includes(place), place);
  }
});

test('every setting that a file of the folder names is a setting of the product', () => {
  const files = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' });
  const texts = files.filter((file) => /Dockerfile$|\.\w+$/.test(file)).map(read);
  const names = texts.flatMap((text) => text.match(/\bENGINE_[A-Z_]+/g) ?? []);
  assert.ok(names.length > 20);
  assert.deepEqual(unknownNames(Object.fromEntries(names.map((name) => [name, '']))), []);
});

describe('deploy/compose.yaml', () => {
  const { services, volumes }: Yaml = parse(read('compose.yaml'), { merge: true });
  const engines = CELLS.flatMap((cell) => ['a', 'b'].map((name) => [cell, `${cell}-${name}`]));
  const envFile = { ...SECRETS, DATABASE_PASSWORD: 'secret' };

  /** As Compose does it: secrets come from the file .env. */
  const filled = (environment: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(
      Object.entries(environment).map(([name, text]) => [
        name,
        text.replace(
          /\$\{(\w+):\?[^}]*\}/g,
          (_, secret: string) => (envFile as Record<string, string>)[secret] ?? 'secret',
        ),
      ]),
    );

  test('has two engines for each of two cells, which the product understands', () => {
    for (const [cell = '', name = ''] of engines) {
      const { environment, build, stop_grace_period } = services[name];
      const config = configOf(filled(environment));
      assert.equal(config.dbSchema, cell);
      assert.equal(config.advertisedAddress, `${name}:${PORT}`);
      assert.equal(config.databaseUrl, SECRETS.DATABASE_URL);
      assert.ok(existsSync(path.join(DEPLOY, build, 'Dockerfile')));
      assert.ok(Number.parseInt(stop_grace_period, 10) * 1_000 > 2 * LIMITS.shutdownMs);
    }
  });

  test('asks for no secret that the guide does not make, and names no file or service that is not there', () => {
    const { text } = page('docs/operate/deploy-cells.md');
    for (const [, name] of read('compose.yaml').matchAll(/\$\{(\w+):\?/g)) {
      assert.match(text, new RegExp(`^${name}=.*\\$\\(openssl`, 'm'));
    }
    for (const [name, service] of Object.entries<Yaml>(services)) {
      // A list of names, or what each of them has to have come to.
      const others = service.depends_on ?? [];
      for (const other of Array.isArray(others) ? others : Object.keys(others)) {
        assert.ok(other in services, other);
      }
      if (service.build !== undefined) {
        assert.ok(existsSync(path.join(DEPLOY, service.build, 'Dockerfile')), name);
      }
      for (const volume of service.volumes ?? []) {
        const [from = ''] = volume.split(':');
        assert.ok(from.startsWith('./') ? existsSync(path.join(DEPLOY, from)) : from in volumes);
      }
    }
  });

  test('no container gains privileges or takes all there is, and the proxy that engines trust reaches no database', () => {
    for (const [name, service] of Object.entries<Yaml>(services)) {
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name);
      assert.deepEqual(service.cap_drop, ['ALL'], name);
      assert.ok(service.mem_limit && service.pids_limit, name);
      const networks = new Set<string>(
        Array.isArray(service.networks) ? service.networks : Object.keys(service.networks),
      );
      assert.ok(!(networks.has('front') && networks.has('postgres')), name);
      if (name.startsWith('etcd') || name.startsWith('postgres'))
        assert.deepEqual([...networks], ['postgres']);
    }
    const { proxy, 'east-a': engine } = services;
    assert.deepEqual(Object.keys(proxy.networks), ['front']);
    assert.equal(engine.environment.ENGINE_TRUSTED_PROXIES, proxy.networks.front.ipv4_address);
  });

  test('the proxy and what keeps its files true share a folder and a user, and the commands exist', () => {
    const { proxy, routing } = services;
    assert.equal(proxy?.user, routing?.user);
    assert.deepEqual(proxy?.volumes, routing?.volumes);
    const [program, ...words] = routing?.command ?? [];
    assert.match(dockerfile, new RegExp(`/usr/local/bin/${program}$`, 'm'));
    checkCommand(words);
    assert.ok(words.includes(`--listen=:${PROXY_PORT}`));
    assert.deepEqual(proxy?.ports, [`127.0.0.1:${PROXY_PORT}:${PROXY_PORT}`]);
    for (const line of page('docs/operate/deploy-cells.md').fences.flatMap(({ text }) =>
      text.replaceAll('\\\n', '').split('\n'),
    )) {
      const [, command] = /^(?:durable-workflow-engine|in_routing) (.*)/.exec(line) ?? [];
      if (command !== undefined) checkCommand(command.trim().split(/\s+/));
    }
  });

  test('its three Postgres lose nothing with their primary, and agree on names, ports and etcd', () => {
    const own: Yaml = parse(read('patroni/patroni.yml'));
    const { ttl, loop_wait, retry_timeout, ...more } = own.bootstrap.dcs;
    assert.ok(ttl >= loop_wait + 2 * retry_timeout);
    // Else a lost primary takes with it what was acknowledged.
    assert.deepEqual([more.synchronous_mode, more.synchronous_mode_strict], [true, true]);
    const having = (variable: string) =>
      Object.entries<Yaml>(services).filter(([, { environment }]) => environment?.[variable]);
    const members = having('PATRONI_NAME');
    const balancer = read('patroni/haproxy.cfg');
    assert.equal(members.length, 3);
    for (const [name, { environment }] of members) {
      assert.equal(environment?.PATRONI_NAME, name);
      assert.equal(environment?.PATRONI_POSTGRESQL_CONNECT_ADDRESS, `${name}:5432`);
      assert.match(balancer, new RegExp(`^ +server ${name} ${name}:5432$`, 'm'));
    }
    const stores = having('ETCD_NAME').map(([name]) => `${name}:2379`);
    assert.equal(own.etcd3.hosts, stores.join(','));
    const [, version] = /postgresql-(\d+) /.exec(read('patroni/Dockerfile')) ?? [];
    assert.equal(own.postgresql.bin_dir, `/usr/lib/postgresql/${version}/bin`);
    for (const [, file = ''] of read('patroni/Dockerfile').matchAll(/^COPY (?:--\S+ )?(\S+) /gm)) {
      assert.ok(existsSync(path.join(DEPLOY, 'patroni', file)), file);
    }
  });

  test('HAProxy accepts what leads to the primary', (t) => {
    if (!hasProgram('haproxy', SYSTEM_FOLDERS)) return t.skip('it is not installed');
    const checked = run('haproxy', ['-c', '-f', path.join(DEPLOY, 'patroni/haproxy.cfg')]);
    assert.equal(checked.status, 0, checked.stderr);
  });
});

function run(program: string, args: readonly string[]) {
  const PATH = [process.env.PATH, ...SYSTEM_FOLDERS].join(path.delimiter);
  return spawnSync(program, args, { encoding: 'utf8', env: { ...process.env, PATH } });
}

describe('deploy/kubernetes', () => {
  const manifests = (file: string) => objectsOf(read(`kubernetes/${file}`));
  const kinds = (all: readonly Yaml[]): Yaml =>
    Object.fromEntries(all.map((manifest) => [manifest.kind, manifest]));
  const { Service, PodDisruptionBudget, StatefulSet } = kinds(manifests('base/engines.yaml'));
  const [job] = manifests('migrate/job.yaml');
  const { Deployment, Service: front } = kinds(manifests('proxy/proxy.yaml'));
  const podOf = (manifest: Yaml): Yaml => manifest.spec.template.spec;
  const engine = podOf(StatefulSet).containers[0];

  /** As Kubernetes fills it in for the first pod of a cell. */
  function environmentOf({ env }: Yaml, cell: string): Record<string, string> {
    const found: Record<string, string> = {};
    for (const { name, value, valueFrom } of env) {
      const field = valueFrom?.fieldRef?.fieldPath;
      const text = field === undefined ? (value ?? '') : FIELDS[field]!(cell);
      found[name] = text.replace(/\$\((\w+)\)/g, (_: string, other: string) => found[other] ?? '');
    }
    return found;
  }
  const FIELDS: Readonly<Record<string, (cell: string) => string>> = {
    "metadata.labels['cell']": (cell) => cell,
    'metadata.name': (cell) => `engine-${cell}-0`,
  };

  test('engines are started as the product understands it, each in the cell of its label', () => {
    for (const cell of CELLS) {
      const config = configOf({ ...SECRETS, ...environmentOf(engine, cell) });
      assert.equal(config.dbSchema, cell);
      assert.equal(config.advertisedAddress, `engine-${cell}-0.engine-${cell}:${PORT}`);
      assert.equal(config.runMigrations, false);
    }
    assert.deepEqual(engine.ports, [{ name: 'http', containerPort: PORT }]);
    const { terminationGracePeriodSeconds } = podOf(StatefulSet);
    assert.ok(terminationGracePeriodSeconds * 1_000 > 2 * LIMITS.shutdownMs, 'to end in order');
  });

  test('a standby counts as ready, so that updates and drains go on', () => {
    const live = { path: ROUTES['health.live'].path, port: 'http' };
    for (const probe of [engine.startupProbe, engine.livenessProbe, engine.readinessProbe]) {
      assert.deepEqual(probe.httpGet, live);
    }
    const { replicas, minReadySeconds, serviceName } = StatefulSet.spec;
    assert.equal(replicas, 2);
    assert.ok(minReadySeconds >= 10);
    assert.equal(PodDisruptionBudget.spec.minAvailable, replicas - 1);
    assert.equal(serviceName, Service.metadata.name);
    assert.equal(Service.spec.clusterIP, 'None');
    assert.equal(Service.spec.publishNotReadyAddresses, true);
    const [apart] =
      podOf(StatefulSet).affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution;
    assert.equal(apart?.topologyKey, 'kubernetes.io/hostname');
  });

  test('selectors find the pods that they are meant for, and those of a migration are no engines', () => {
    const { selector, template } = StatefulSet.spec;
    const labels = template.metadata.labels;
    assert.deepEqual(selector, { matchLabels: labels });
    assert.deepEqual(PodDisruptionBudget.spec.selector, { matchLabels: labels });
    assert.deepEqual(Service.spec.selector, labels);
    assert.notDeepEqual(job.spec.template.metadata.labels, labels);
    assert.deepEqual(front.spec.selector, Deployment.spec.template.metadata.labels);
    assert.equal(front.spec.ports[0].port, PROXY_PORT);
  });

  test('every container is locked down, and has what it may use stated', () => {
    for (const pod of [StatefulSet, job, Deployment].map(podOf)) {
      assert.equal(pod.securityContext.runAsNonRoot, true);
      for (const { securityContext, resources } of [
        ...pod.containers,
        ...(pod.initContainers ?? []),
      ]) {
        assert.deepEqual(securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        assert.ok('memory' in resources.requests && 'memory' in resources.limits);
      }
    }
  });

  test('the Job only migrates, with a role that no engine has', () => {
    const [migrate] = podOf(job).containers;
    const [, entry = '', start, ...flags] = migrate.args;
    assert.match(dockerfile, new RegExp(entry.replaceAll('/', '\\/')));
    assert.equal(start, 'start');
    const owner = { DATABASE_MIGRATION_URL: 'postgres://owner:secret@database:5432/engine' };
    const config = configOf({ ...SECRETS, ...owner, ...environmentOf(migrate, 'east') }, flags);
    assert.equal(config.migrateOnly, true);
    const secretsOf = ({ envFrom }: Yaml) => envFrom.map(({ secretRef }: Yaml) => secretRef.name);
    assert.deepEqual(secretsOf(engine), ['engine', 'database']);
    assert.deepEqual(secretsOf(migrate), ['engine', 'database-owner']);
    const { text } = page('docs/operate/deploy-cells.md');
    for (const name of [...Object.keys(SECRETS), ...Object.keys(owner)]) {
      assert.match(text, new RegExp(`from-literal=${name}=`));
    }
  });

  test('what keeps the maps of the proxy true is told by commands that exist', () => {
    const { containers, initContainers = [] } = podOf(Deployment);
    const writers = [...initContainers, ...containers].filter(
      ({ image }: Yaml) => image === 'durable-workflow-engine',
    );
    assert.equal(writers.length, 2);
    for (const { args = [] } of writers) checkCommand(args.slice(1));
    const haproxy = containers.find(({ name }: Yaml) => name === 'haproxy');
    assert.deepEqual(haproxy?.ports, [{ name: 'http', containerPort: PROXY_PORT }]);
  });

  test('the pod that clients reach has the address of the directory, and no key of an engine', () => {
    const { containers, initContainers = [] } = podOf(Deployment);
    assert.doesNotMatch(read('kubernetes/proxy/proxy.yaml'), /envFrom/);
    for (const { image, env = [] } of [...initContainers, ...containers]) {
      const secrets = env.map(({ name, valueFrom }: Yaml) => [name, valueFrom?.secretKeyRef]);
      const directory = { name: 'engine', key: 'ENGINE_CLUSTER_URL' };
      const wanted = image === 'durable-workflow-engine' ? [['ENGINE_CLUSTER_URL', directory]] : [];
      assert.deepEqual(secrets, wanted);
    }
  });

  test('the folder of a cell names it in its suffix, its label and its secret, and nothing else differs', () => {
    const [east = '', west = ''] = CELLS.map((cell) =>
      read(`kubernetes/${cell}/kustomization.yaml`),
    );
    assert.equal(west, east.replaceAll('east', 'west'));
    const { resources, nameSuffix, labels, patches } = parse(east) as Yaml;
    assert.deepEqual(resources, ['../base']);
    assert.equal(nameSuffix, '-east');
    assert.deepEqual(labels[0].pairs, { cell: 'east' });
    const [{ path: place, value }]: Yaml = parse(patches[0].patch);
    assert.equal(value, 'database-east');
    assert.equal(place, '/spec/template/spec/containers/0/envFrom/1/secretRef/name');
    assert.match(page('docs/operate/deploy-cells.md').text, /secret generic database-east/);
  });

  test('Kustomize makes manifests of every folder', (t) => {
    if (!hasProgram('kubectl', SYSTEM_FOLDERS)) return t.skip('kubectl is not installed');
    for (const folder of readdirSync(path.join(DEPLOY, 'kubernetes'))) {
      const made = run('kubectl', ['kustomize', path.join(DEPLOY, 'kubernetes', folder)]);
      assert.equal(made.status, 0, made.stderr);
    }
    const made = run('kubectl', ['kustomize', path.join(DEPLOY, 'kubernetes/east')]).stdout;
    const all = kinds(objectsOf(made));
    const labels = { app: 'engine', cell: 'east' };
    assert.equal(all.StatefulSet.spec.serviceName, all.Service.metadata.name);
    assert.deepEqual(all.Service.spec.selector, labels);
    assert.deepEqual(all.PodDisruptionBudget.spec.selector, { matchLabels: labels });
    assert.deepEqual(all.StatefulSet.spec.template.metadata.labels, labels);
    const { containers, affinity } = podOf(all.StatefulSet);
    assert.match(JSON.stringify(affinity), /"cell":"east"/);
    assert.equal(containers[0].envFrom[1].secretRef.name, 'database-east');
  });
});
