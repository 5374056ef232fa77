/**
 * Addresses that a request from a workflow must never reach, the ways to spell them in a URL, and
 * the tricks that lead to them: names, redirects, parsers that disagree. Shared by the tests of the
 * address guard, of the handler that uses it and of the running server.
 */

import { words } from './table.js';

export const FORBIDDEN_IPV4 = words(`
  0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255
  127.0.0.1 127.1.2.3 127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254
  169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1
  192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1
  239.255.255.255 240.0.0.1 255.255.255.255
`);

export const FORBIDDEN_IPV6 = words(`
  :: ::1 0:0:0:0:0:0:0:1 100::1 2001:db8::1 2001:2::1 2001:10::1 2001:20::1 3fff::1 5f00::1
  fc00::1 fd00:ec2::254 fdff::1 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1
`);

/** Every way to write an IPv4 address as the host of a URL that this engine knows of. */
export function spellings(address: string): string[] {
  const bytes = address.split('.').map(Number) as [number, number, number, number];
  const [a, b, c, d] = bytes;
  const value = ((a * 256 + b) * 256 + c) * 256 + d;
  const high = (a * 256 + b).toString(16);
  const low = (c * 256 + d).toString(16);
  const inverse = bytes.map((byte) => 255 - byte) as [number, number, number, number];
  return [
    address,
    `${address}.`,
    String(value),
    `0x${value.toString(16)}`,
    `0${value.toString(8)}`,
    bytes.map((byte) => `0x${byte.toString(16)}`).join('.'),
    bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    percentEncoded(address),
    fullWidth(address),
    `[::ffff:${address}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${high}:${low}]`,
    `[::${address}]`,
    `[::ffff:0:${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${address}]`,
    `[2002:${high}:${low}::1]`,
    `[2001:0:4136:e378:8000:63bf:${hexPair(inverse[0], inverse[1])}:${hexPair(inverse[2], inverse[3])}]`,
  ];
}

/** Both families in one order, for names that answer each of them. */
export const FORBIDDEN: readonly string[] = [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6];

/** An address of the public internet that the guard lets pass. */
export const PUBLIC_ADDRESS = '93.184.216.34';

/** A URL that must not lead to a connection, whatever is at its end. */
export interface UrlVector {
  /** What is tried, such as `private address` or `scheme`. */
  readonly kind: string;
  readonly url: string;
}

const list = (kind: string, urls: readonly string[]): UrlVector[] =>
  urls.map((url) => ({ kind, url }));

/** URLs that say by themselves where they lead. @param port of what must not be reached */
export function urlVectors(port: number): UrlVector[] {
  const at = (host: string, path = '/') => `http://${host}:${port}${path}`;
  const hosts = (kind: string, names: readonly string[]) => {
    const urls = names.map((host) => at(host));
    return list(kind, urls);
  };
  return [
    ...hosts('spelling', FORBIDDEN_IPV4.flatMap(spellings)),
    ...hosts('IPv6', FORBIDDEN_IPV6.map(bracketed)),
    ...hosts('name of this machine', LOCAL_NAMES),
    ...hosts('look-alike digits', LOOK_ALIKES),
    ...list(
      'https',
      FORBIDDEN.map((address) => `https://${bracketed(address)}:${port}/`),
    ),
    ...list('scheme', [...SCHEMES.map((scheme) => `${scheme}://127.0.0.1:${port}/`), ...OPAQUE]),
    ...list('credentials', [
      ...CREDENTIALS.map((user) => at(`${user}@127.0.0.1`)),
      ...CREDENTIALS.map((user) => at(`${user}@${PUBLIC_ADDRESS}`)),
    ]),
    ...list('parser', [
      `http:/127.0.0.1:${port}/`,
      `http:127.0.0.1:${port}`,
      `http:///127.0.0.1:${port}/`,
      `http:\\\\127.0.0.1:${port}\\`,
      `http://127.0.0.1:${port}\\@example.com/`,
      `http://127.0.0.1:${port}#@example.com/`,
      `http://127.0.0.1:${port}?@example.com/`,
      `\thttp://127.0.0.1:${port}/`,
      `ht\ntp://127.0.0.1:${port}/`,
      `http://127.0.\t0.1:${port}/`,
      `http://127.0.0.1:${port}\r\n/`,
      `HtTp://127.0.0.1:${port}/`,
      `http://127.0.0.1:000${port}/`,
      ...['[fe80::1%25lo]', '[fe80::1%lo]', '[::1%25lo]'].map((host) => at(host)),
      ...['%00.', '%2f.', '%40'].map((odd) => at(`127.0.0.1${odd}example.com`)),
      ...['4294967296', '127.0.0.256', '0x7f.0.0.1.', '127.0.0.1.'].map((host) => at(host)),
      `//127.0.0.1:${port}/`,
      ...['/etc/passwd', '127.0.0.1', 'http://', 'http://[::1', 'http://127.0.0.1:99999/'],
    ]),
    ...list(
      'port',
      PORTS.map((number) => `http://127.0.0.1:${number}/`),
    ),
  ];
}

/** A name, and the addresses that it answers at each look-up; the last answer stays. */
export interface NameVector {
  readonly kind: string;
  readonly name: string;
  readonly answers: readonly (readonly string[])[];
}

/** Names that lead where they must not, at the first look-up already. */
export function nameVectors(): NameVector[] {
  const one = (kind: string, name: string, ...addresses: string[]): NameVector => {
    return { kind, name, answers: [addresses] };
  };
  return [
    ...FORBIDDEN.flatMap((address, index) => [
      one('alone', `alone-${index}.test`, address),
      one('first of two', `first-${index}.test`, address, PUBLIC_ADDRESS),
      one('last of two', `last-${index}.test`, PUBLIC_ADDRESS, address),
    ]),
    ...WRAPPED.map((address, index) => one('IPv4 within IPv6', `wrapped-${index}.test`, address)),
    one('public A, private AAAA', 'a-aaaa.test', PUBLIC_ADDRESS, 'fd00::1'),
    one('private A, public AAAA', 'aaaa-a.test', '2606:4700::1', '10.0.0.1'),
    one('trailing dot', 'dotted.test.', '127.0.0.1'),
    one('international name', 'xn--intrn-cua.test', '127.0.0.1'),
    ...METADATA_NAMES.map((name) => one('metadata service', name, '169.254.169.254')),
    ...LOOPBACK_NAMES.map((name) => one('public name', name, '127.0.0.1')),
  ];
}

/** Names that are public when they are asked first, and lead inside from the second time on. */
export function rebindingVectors(): NameVector[] {
  return ['127.0.0.1', '169.254.169.254', '10.0.0.1', '::1', 'fd00::1', '::ffff:127.0.0.1'].map(
    (address, index) => ({
      kind: 'rebinding',
      name: `rebind-${index}.test`,
      answers: [[PUBLIC_ADDRESS], [address]],
    }),
  );
}

/** Where a public server may try to send a request on. @param port of what must not be reached */
export function redirectVectors(port: number): UrlVector[] {
  const at = (host: string) => `http://${host}:${port}/`;
  return [
    ...list('redirect to an address', FORBIDDEN.map(bracketed).map(at)),
    ...list('redirect to a spelling', spellings('127.0.0.1').map(at)),
    ...list('redirect by another parser', [
      ...[`//127.0.0.1:${port}/`, `\\\\127.0.0.1:${port}/`, `http:\\\\[::1]:${port}/`],
    ]),
    ...list(
      'redirect to a scheme',
      SCHEMES.map((scheme) => `${scheme}://127.0.0.1:${port}/`),
    ),
    ...list('redirect to a name', [at('alone-7.test'), at('localhost')]),
    ...list('redirect with credentials', [at(`user:pass@${PUBLIC_ADDRESS}`)]),
  ];
}

const LOCAL_NAMES = words(`
  localhost LOCALHOST localhost. a.localhost a.b.localhost. loc%61lhost local\u00adhost
  \uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54
  \u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3
`);

/** Circled and mathematical digits, and the other full stops that host names are folded from. */
const LOOK_ALIKES = words(`
  \u2460\u2461\u2466.\u24ea.\u24ea.\u2460
  \u{1d7cf}\u{1d7d0}\u{1d7d5}.\u{1d7ce}.\u{1d7ce}.\u{1d7cf} 127\uff0e0\uff0e0\uff0e1
  127\uff610\uff610\uff611 127\u30020\u30020\u30021 127.0.0.1\u00ad 127.0\u200b.0.1
  \u2488127.0.0.1
`);

const SCHEMES = words(`
  file ftp gopher dict ldap ldaps tftp sftp ssh telnet smb redis ws wss http+unix netdoc
`);

const OPAQUE = words(`
  file:///etc/passwd data:text/plain,x javascript:0 about:blank blob:http://127.0.0.1/x
  jar:http://127.0.0.1!/x view-source:http://127.0.0.1/ unix:/var/run/docker.sock
`);

const CREDENTIALS = ['user', 'user:secret', ':secret', 'example.com', 'example.com:80', '%40', '@'];

const PORTS = [1, 22, 25, 80, 443, 2375, 3306, 5432, 6379, 8080, 9200, 11211, 65535];

/** Addresses of IPv6 that lead to IPv4 ones, as a name server may answer them. */
const WRAPPED = words(`
  ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:7f00:1 ::127.0.0.1 64:ff9b::127.0.0.1
  64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 2002:7f00:1::1 2002:a9fe:a9fe::1
  2001:0:4136:e378:8000:63bf:80ff:fffe ::ffff:0:7f00:1
`);

const METADATA_NAMES = words(`
  metadata metadata.google.internal metadata.google.internal. instance-data
  instance-data.ec2.internal metadata.azure.internal metadata.packet.net rancher-metadata
`);

/** Names that anybody may register, or that a network gives to its own. */
const LOOPBACK_NAMES = words(`
  localtest.me lvh.me 127.0.0.1.nip.io 7f000001.nip.io host.docker.internal
  kubernetes.default.svc ip6-localhost localhost.localdomain localhost4
`);

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address);

const hexPair = (high: number, low: number): string => (high * 256 + low).toString(16);

const percentEncoded = (text: string): string =>
  [...text].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('');

/** Full-width digits and the ideographic full stop, which host names are folded from. */
function fullWidth(text: string): string {
  return [...text]
    .map((char) => (char === '.' ? '\u3002' : String.fromCodePoint(0xff10 + Number(char))))
    .join('');
}
