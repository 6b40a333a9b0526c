package dev.fieldmesh.core.agent

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.flow.Flow
import java.security.GeneralSecurityException

/** This app as nodes and controllers meet it: by its key, over the way to their host at the moment of a call. */
class Caller(
    private val identity: () -> Identity,
    private val io: CoroutineDispatcher,
    private val seeker: Seeker,
    private val way: (host: String) -> Way,
) {
    /** A node on this phone itself is called over none of its networks. */
    fun client(node: Pairing) = AgentClient(node, own(), io, wayTo(node))

    /** So is a controller, as in Termux. */
    fun controller(at: Pairing) = ControllerClient(at, own(), io, wayTo(at))

    /** See [Seeker.follow]. */
    suspend fun seek(node: Pairing, lost: Flow<Boolean>, found: (Pairing) -> Unit) =
        seeker.follow(node, lost, { meets { client(it).status() } }, found)

    private fun own(): Identity = try {
        identity()
    } catch (e: GeneralSecurityException) {
        throw AgentException.NoKey(e)
    }

    private fun wayTo(peer: Pairing): () -> Way =
        if (peer.host == Pairing.LOOPBACK) ({ Way.PREFERRED }) else ({ way(peer.host) })

    /** See [join]. */
    suspend fun join(code: PairingCode): Admission = join(code, own(), io, way(code.host))
}
