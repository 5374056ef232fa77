/** Finds the route of a method and path. */

import { bodyBytesMax } from './route-row.js';
import { ROUTES, type Route } from './routes.js';

const PREFIX = '/api/v1';

export interface RouteMatch {
  readonly route: Route;
  /** Percent-decoded, not yet checked against the row's `params`. */
  readonly params: Readonly<Record<string, string>>;
  /** The path was the deprecated form of a route without its prefix. */
  readonly isBareAlias: boolean;
}

/**
 * `not-found` is a 404, `bad-encoding` (a path parameter that is not percent-encoded UTF-8) a 400, and `allow` a 405
 * with the path's methods.
 */
export type MatchResult =
  | RouteMatch
  | 'not-found'
  | 'bad-encoding'
  | { readonly allow: readonly string[] };

/** A tree of path segments; parameters match only where no fixed segment leads to a route. */
interface PathNode {
  readonly fixed: Map<string, PathNode>;
  parameter: PathNode | undefined;
  routes: Map<string, Route> | undefined;
}

const newNode = (): PathNode => ({ fixed: new Map(), parameter: undefined, routes: undefined });
const tree = newNode();
/** Paths without parameters, with and without the prefix: most polls and creations. */
const wholePaths = new Map<string, PathNode>();
for (const route of Object.values(ROUTES)) addRoute(route);

/**
 * Finds the operation of a request.
 *
 * @param method upper case; HEAD matches GET
 * @param path without query, with or without the prefix. A trailing or doubled slash is not found.
 */
export function matchRoute(method: string, path: string): MatchResult {
  const isPrefixed = path.startsWith(PREFIX) && path.charCodeAt(PREFIX.length) === 47;
  const values: string[] = [];
  const node = wholePaths.get(path) ?? findNode(path, isPrefixed ? 3 : 1, values);
  if (node?.routes === undefined) return 'not-found';
  const route = node.routes.get(method);
  if (route === undefined) return { allow: [...node.routes.keys()] };
  const params = decodeParams(route, values);
  if (params === undefined) return 'bad-encoding';
  return { route, params, isBareAlias: !isPrefixed && route.isAtRoot !== true };
}

/** Limit of a request's body; undefined: the server's limit. */
export function bodyBytesOf(method: string, path: string): number | undefined {
  const found = matchRoute(method, path);
  const isRoute = typeof found === 'object' && 'route' in found;
  return bodyBytesMax(isRoute ? found.route : {});
}

const HEALTH_PATHS: ReadonlySet<string> = new Set(
  [ROUTES['health.live'], ROUTES['health.ready']].flatMap(({ path }) => [path, PREFIX + path]),
);

/** Rules that the server applies before it has a whole request. */
export const PATH_RULES = { bodyBytesOf, probePaths: HEALTH_PATHS } as const;

function findNode(path: string, firstSegment: number, values: string[]): PathNode | undefined {
  const segments = path.split('/');
  return segments[0] === '' ? walk(tree, segments, firstSegment, values) : undefined;
}

/** Depth-first, fixed segments first; leaves the parameters of the found path in `values`. */
function walk(
  node: PathNode,
  segments: readonly string[],
  index: number,
  values: string[],
): PathNode | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.routes === undefined ? undefined : node;
  const next = node.fixed.get(segment);
  if (next !== undefined) {
    const found = walk(next, segments, index + 1, values);
    if (found !== undefined) return found;
  }
  if (node.parameter === undefined || segment === '') return undefined;
  values.push(segment);
  const found = walk(node.parameter, segments, index + 1, values);
  if (found === undefined) values.pop();
  return found;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

function decodeParams(
  route: Route,
  values: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (values.length === 0) return NO_PARAMS;
  const params: Record<string, string> = {};
  for (const [index, name] of route.paramNames.entries()) {
    const value = decodeSegment(values[index] ?? '');
    if (value === undefined) return undefined;
    params[name] = value;
  }
  return params;
}

function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not percent-encoded UTF-8: the caller answers 400.
    return undefined;
  }
}

function addRoute(route: Route): void {
  let node = tree;
  for (const segment of route.path.split('/').slice(1)) {
    const next = segment.startsWith('{') ? node.parameter : node.fixed.get(segment);
    const child = next ?? newNode();
    if (segment.startsWith('{')) node.parameter = child;
    else node.fixed.set(segment, child);
    node = child;
  }
  node.routes ??= new Map();
  node.routes.set(route.method, route);
  if (route.method === 'GET') node.routes.set('HEAD', route);
  if (route.paramNames.length === 0) {
    wholePaths.set(route.path, node);
    wholePaths.set(PREFIX + route.path, node);
  }
}
