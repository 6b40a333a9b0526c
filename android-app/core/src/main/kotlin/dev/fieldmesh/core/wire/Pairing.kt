package dev.fieldmesh.core.wire

import kotlinx.serialization.Serializable

/** What the app says to be paired, and what the controller answers: see protocols/pairing. */
@Serializable
data class PairRequest(val version: Int, val role: String, val proof: String)

@Serializable
data class PairReply(val proof: String, val name: String, val role: String, val nodes: List<PairNode> = emptyList())

/** A node of the fleet, at [address] host:port. */
@Serializable
data class PairNode(val name: String, val address: String, val pin: String)
