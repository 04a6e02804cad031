/** Notices the end of a response, however it ends. */

/** Returns the same response, and calls `ended` once: after its body, or when the client disconnects. */
export function afterBody(response: Response, ended: () => void): Response {
  if (!response.body) {
    ended();
    return response;
  }
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  void response.body
    .pipeTo(writable)
    .catch(() => {})
    .finally(ended);
  return new Response(readable, response);
}
