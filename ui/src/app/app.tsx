/** The dashboard: what every page below may count on. */

import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Router, useLocation } from 'wouter';
import { isFinal, isUnknown } from '../api/engine.tsx';
import { LiveProvider } from '../api/live.tsx';
import { ToastProvider } from '../components/toasts.tsx';
import { FailureBoundary } from './failure-boundary.tsx';
import { Routes } from './routes.tsx';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

const RETRIES = 2;

const createQueries = (onError?: (error: unknown) => void) =>
  new QueryClient({
    queryCache: new QueryCache({ ...(onError && { onError }) }),
    defaultOptions: {
      queries: {
        retry: (count, error) => count < RETRIES && !isFinal(error),
        staleTime: 1000,
        refetchOnWindowFocus: true,
      },
      mutations: { retry: false },
    },
  });

/** Of whoever has not signed in yet. */
const signInQueries = createQueries();

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, '');

export function App() {
  return (
    <QueryClientProvider client={signInQueries}>
      <Router base={BASE}>
        <ToastProvider>
          <SignIn>
            <OwnQueries>
              <LiveProvider>
                <Shell>
                  <Content />
                </Shell>
              </LiveProvider>
            </OwnQueries>
          </SignIn>
        </ToastProvider>
      </Router>
    </QueryClientProvider>
  );
}

/** What was read for one tenant or key is never shown to another: they begin with nothing. */
function OwnQueries({ children }: { children: ReactNode }) {
  // A key that is refused all of a sudden was revoked, or has expired: the sign-in looks again.
  const [queries] = useState(() =>
    createQueries((error) => {
      if (isUnknown(error)) void signInQueries.refetchQueries({ queryKey: ['whoami'] });
    }),
  );
  return <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
}

function Content() {
  const [place] = useLocation();
  return (
    <FailureBoundary place={place}>
      <Routes />
    </FailureBoundary>
  );
}
