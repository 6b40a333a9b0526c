package dev.fieldmesh.core.wire

import kotlinx.serialization.Serializable

/** What the app says to be paired, and what the controller answers: see protocols/pairing. */
@Serializable
data class PairRequest(val version: Int, val role: String, val proof: String)

/** [controller] is there for an app that may choose and steer runs. */
@Serializable
data class PairReply(
    val proof: String,
    val name: String,
    val role: String,
    val nodes: List<PairNode> = emptyList(),
    val controller: PairController? = null,
)

/** A node of the fleet, at [address] host:port. */
@Serializable
data class PairNode(val name: String, val address: String, val pin: String)

/** On which port the controller's host serves experimenters. */
@Serializable
data class PairController(val port: Int)
