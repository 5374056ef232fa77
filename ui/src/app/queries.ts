/** Query clients: retry policy, and the check of a rejected key. */

import { QueryCache, QueryClient } from '@tanstack/react-query';
import { isFinal } from '../api/engine-error.ts';
import { forget } from '../api/session.ts';

const RETRIES = 2;

export const createQueries = (onError?: (error: unknown) => void) =>
  new QueryClient({
    queryCache: new QueryCache({ ...(onError && { onError }) }),
    defaultOptions: {
      queries: {
        retry: (count, error) => count < RETRIES && !isFinal(error),
        staleTime: 1000,
        refetchOnWindowFocus: true,
        // A local engine is reachable without a network, and a request finds out whether a remote one is.
        networkMode: 'always',
      },
      // Actions fail at once instead of being sent later, when the user no longer expects them.
      mutations: { retry: false, networkMode: 'always' },
    },
  });

/** For the sign-in, before there is a tenant. */
export const signInQueries = createQueries();

/** A key that is rejected later was revoked or has expired: asks the engine who the caller is. */
export function lookWhoItIs(): void {
  void signInQueries.refetchQueries({ queryKey: ['whoami'] });
}

export function signOut(): void {
  // Its cache is keyed by API key.
  signInQueries.clear();
  forget();
}
