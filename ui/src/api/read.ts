/** Reads by the name of an operation, such as `instances.get`: the name and its arguments are the key in the cache. */

import { keepPreviousData, type UseQueryOptions, useQuery } from '@tanstack/react-query';
import type { CallOptions, Client, Operations } from 'durable-workflow-engine-client';
import { useEngine } from './engine.tsx';
import type { LiveMeta } from './rereads.ts';

type Group = keyof Operations & string;
export type OperationName = {
  [G in Group]: Operations[G] extends (...args: never) => unknown
    ? never
    : `${G}.${keyof Operations[G] & string}`;
}[Group];

type Method<Name extends OperationName> = Name extends `${infer G extends Group}.${infer M}`
  ? Operations[G][M & keyof Operations[G]]
  : never;
/** Path parameters, then the query. */
export type ArgumentsOf<Name extends OperationName> =
  Method<Name> extends (...args: infer All) => unknown
    ? Required<All> extends readonly [...infer Own extends unknown[], CallOptions]
      ? Own
      : never
    : never;
export type ResultOf<Name extends OperationName> =
  Method<Name> extends (...args: never) => infer Result ? Awaited<Result> : never;

/** Calls the operation with this name. */
export async function call<Name extends OperationName>(
  client: Client,
  name: Name,
  args: ArgumentsOf<Name>,
  options: CallOptions,
): Promise<ResultOf<Name>> {
  const [group, method] = name.split('.') as [Group, never];
  const operations = client[group] as Record<string, (...args: unknown[]) => unknown>;
  return (await operations[method]?.(...(args as unknown[]), options)) as ResultOf<Name>;
}

export interface ReadOptions<Result, Data>
  extends Omit<UseQueryOptions<Result, Error, Data>, 'queryKey' | 'queryFn' | 'meta'>,
    Pick<LiveMeta, 'live' | 'paceMs'> {
  /** What was read with the arguments before stays until there is an answer. */
  readonly keepsBefore?: boolean;
}

export function useRead<Name extends OperationName, Data = ResultOf<Name>>(
  name: Name,
  args: ArgumentsOf<Name>,
  { live, paceMs, keepsBefore, ...options }: ReadOptions<ResultOf<Name>, Data> = {},
) {
  const { client } = useEngine();
  return useQuery({
    queryKey: [name, ...(args as unknown[])],
    queryFn: ({ signal }) => call(client, name, args, { signal }),
    ...(keepsBefore && { placeholderData: keepPreviousData as never }),
    ...options,
    ...(live !== undefined && { meta: { live, ...(paceMs !== undefined && { paceMs }) } }),
  });
}
