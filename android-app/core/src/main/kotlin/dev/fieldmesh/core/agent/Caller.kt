package dev.fieldmesh.core.agent

import kotlinx.coroutines.CoroutineDispatcher

/** This app as nodes and controllers meet it: by its key, over the way that [way] tells at the moment of a call. */
class Caller(private val identity: () -> Identity, private val io: CoroutineDispatcher, private val way: () -> Way) {
    fun client(node: Pairing) = AgentClient(node, identity(), io, way)

    /** See [join]. */
    suspend fun join(code: PairingCode): List<FleetNode> = join(code, identity(), io, way())
}
