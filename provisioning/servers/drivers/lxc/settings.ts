/** The driver from the operator's settings: addresses as text, certificates in files. */
import { readFileSync } from 'node:fs';
import { endpointOf } from './endpoint.ts';
import { LxcDriver, type LxcOptions } from './lxc.ts';
import { probeByCommand } from './ssh-proof.ts';

interface Settings extends Omit<LxcOptions, 'endpoints' | 'probe'> {
  /** `unix:/path` or `https://host:8443`. */
  endpoints: string[];
  /** PEM files; for https endpoints. */
  tls: { certificateFile: string; keyFile: string; serverCertificateFile: string } | undefined;
  /** Absent: the worker connects to the machines. */
  probeCommand: string | undefined;
}

/** @throws Error if a file cannot be read */
export function lxcDriver({ endpoints, tls: files, probeCommand, ...options }: Settings): LxcDriver {
  const read = (file: string) => readFileSync(file, 'utf8');
  const tls = files && {
    certificate: read(files.certificateFile),
    key: read(files.keyFile),
    serverCertificate: read(files.serverCertificateFile),
  };
  return new LxcDriver({
    ...options,
    endpoints: endpoints.map((text) => endpointOf(text, tls)),
    ...(probeCommand && { probe: probeByCommand(probeCommand) }),
  });
}
